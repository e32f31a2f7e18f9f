package ocm

# What the host computes for compiled Rego, also where an answer is a set, which JSON does not have.
image := "docker.io/library/nginx:1.25"

answers := [
	regex.split("[/:]", image),
	regex.replace(image, `^([a-z.]+)/`, "$1.example.com/"),
	regex.find_n("[a-z]+", image, 2),
	regex.template_match("docker.io/<.+>:<[0-9.]+>", image, "<", ">"),
	json.patch(input.cluster, [{"op": "add", "path": "/labels", "value": {"a": {1, 2}}}]).labels,
	object.subset(input.cluster, {"name": input.cluster.name}),
	yaml.unmarshal("a: [1, x]\nb: {c: null}\n"),
	net.cidr_expand("10.0.0.0/30"),
	net.cidr_contains_matches({"a": "10.0.0.0/8", "b": "192.168.0.0/16"}, {"10.1.0.0/16", "192.168.1.1"}),
	net.cidr_is_valid("10.0.0.0/33"),
	numbers.range_step(0, 10, 5),
	strings.split_n(image, "/", -1),
	glob.quote_meta("*.{a}"),
	base64url.encode_no_pad("a?>"),
	crypto.sha1("a"),
	crypto.hmac.sha256("a", "b"),
	io.jwt.decode("eyJhbGciOiJIUzI1NiJ9.eyJhIjoxfQ.AAAA"),
	io.jwt.verify_hs256("eyJhbGciOiJIUzI1NiJ9.eyJhIjoxfQ.AAAA", "secret"),
]

deny contains sprintf("%d: %v", [number, answer]) if some number, answer in answers

# What a set is, the module itself must see.
deny contains "sets" if {
	"10.0.0.3" in net.cidr_expand("10.0.0.0/30")
	count(net.cidr_expand("10.0.0.0/30") & {"10.0.0.1", "x"}) == 1
}
