//! Which built-in functions the host computes, what each costs, and how it is called.

use serde_json::{Value, json};
use sha1::Sha1;
use sha2::{Sha256, Sha384, Sha512};

use super::term::Term;
use super::work::Work;
use super::{encoding, jwt, net, patch, regex, semver, sprintf, strings, time, units, yaml};

/// A built-in function. None of them looks at the world: `time.now_ns` is the time of the request.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Builtin(&'static Entry);

#[derive(Debug)]
struct Entry {
    name: &'static str,
    call: Call,
}

/// How a function is called, by how many values it takes.
#[derive(Clone, Copy, Debug)]
enum Call {
    /// The time of the request.
    Now,
    /// Notes for whoever debugs a policy: nobody here.
    Trace,
    One(fn(&Term) -> Result<Value, String>),
    Two(fn(&Term, &Term) -> Result<Value, String>),
    Four(fn(&Term, &Term, &Term, &Term) -> Result<Value, String>),
    /// So many values, with fuel that is taken while it works.
    Working(usize, Working),
}

type Working = fn(&[Term], &mut Work) -> Result<Term, String>;

/// What a function answers, written as Rego writes values.
#[derive(Debug, PartialEq)]
pub(crate) struct Answer {
    pub(crate) text: String,
    /// Whether it is JSON as well: it has no sets.
    pub(crate) json: bool,
}

impl From<Value> for Answer {
    fn from(value: Value) -> Self {
        Self { text: value.to_string(), json: true }
    }
}

impl From<Term> for Answer {
    fn from(term: Term) -> Self {
        Self { text: term.to_string(), json: term.is_json() }
    }
}

const fn one(name: &'static str, call: fn(&Term) -> Result<Value, String>) -> Entry {
    Entry { name, call: Call::One(call) }
}

const fn two(name: &'static str, call: fn(&Term, &Term) -> Result<Value, String>) -> Entry {
    Entry { name, call: Call::Two(call) }
}

const fn working(name: &'static str, values: usize, call: Working) -> Entry {
    Entry { name, call: Call::Working(values, call) }
}

/// Every function, sorted by name.
static ALL: [Entry; 51] = [
    one("base64url.encode_no_pad", encoding::base64url),
    two("crypto.hmac.equal", encoding::hmac_equal),
    two("crypto.hmac.sha1", encoding::hmac::<Sha1>),
    two("crypto.hmac.sha256", encoding::hmac::<Sha256>),
    two("crypto.hmac.sha512", encoding::hmac::<Sha512>),
    one("crypto.sha1", encoding::sha1),
    one("crypto.sha256", encoding::sha256),
    one("glob.quote_meta", strings::quote_glob),
    one("hex.decode", encoding::hex_decode),
    one("hex.encode", encoding::hex_encode),
    working("io.jwt.decode", 1, jwt::decode),
    working("io.jwt.verify_hs256", 2, |values, work| jwt::verify::<Sha256>("HS256", values, work)),
    working("io.jwt.verify_hs384", 2, |values, work| jwt::verify::<Sha384>("HS384", values, work)),
    working("io.jwt.verify_hs512", 2, |values, work| jwt::verify::<Sha512>("HS512", values, work)),
    working("json.patch", 2, patch::patch),
    working("net.cidr_contains_matches", 2, net::contains_matches),
    working("net.cidr_expand", 1, net::expand),
    working("net.cidr_is_valid", 1, net::is_valid),
    working("numbers.range_step", 3, strings::range_step),
    working("object.subset", 2, patch::subset),
    // Newer compilers bring these themselves: re_match, regex.find_all_string_submatch_n, regex.is_valid, regex.match.
    working("re_match", 2, regex::is_match),
    working("regex.find_all_string_submatch_n", 3, regex::find_groups),
    working("regex.find_n", 3, regex::find),
    working("regex.is_valid", 1, regex::is_valid),
    working("regex.match", 2, regex::is_match),
    working("regex.replace", 3, regex::replace),
    working("regex.split", 2, regex::split),
    working("regex.template_match", 4, regex::template_match),
    two("semver.compare", semver::compare),
    one("semver.is_valid", |text| Ok(semver::is_valid(text))),
    two("sprintf", sprintf::sprintf),
    two("strings.any_prefix_match", |searched, base| {
        strings::any_match(searched, base, |text, part| text.starts_with(part))
    }),
    two("strings.any_suffix_match", |searched, base| {
        strings::any_match(searched, base, |text, part| text.ends_with(part))
    }),
    two("strings.count", strings::count),
    working("strings.split_n", 3, strings::split_n),
    Entry { name: "time.add_date", call: Call::Four(time::add_date) },
    one("time.clock", time::clock),
    one("time.date", time::date),
    two("time.diff", time::diff),
    Entry { name: "time.now_ns", call: Call::Now },
    one("time.parse_duration_ns", time::parse_duration),
    one("time.parse_rfc3339_ns", time::parse_rfc3339),
    one("time.weekday", time::weekday),
    Entry { name: "trace", call: Call::Trace },
    one("units.parse", units::parse),
    one("units.parse_bytes", units::parse_bytes),
    one("urlquery.decode", encoding::query_decode),
    one("urlquery.decode_object", encoding::query_decode_object),
    one("urlquery.encode", encoding::query_encode),
    one("urlquery.encode_object", encoding::query_encode_object),
    working("yaml.unmarshal", 1, yaml::unmarshal),
];

impl Builtin {
    /// The function of this name, if it is there.
    pub(crate) fn named(name: &str) -> Option<Self> {
        ALL.iter().find(|entry| entry.name == name).map(Self)
    }

    pub(crate) fn name(self) -> &'static str {
        self.0.name
    }

    /// How many values it takes.
    pub(crate) fn arguments(self) -> usize {
        match self.0.call {
            Call::Now => 0,
            Call::Trace | Call::One(_) => 1,
            Call::Two(_) => 2,
            Call::Four(_) => 4,
            Call::Working(values, _) => values,
        }
    }

    /// Fuel for reading these values and computing with them, taken before either is done.
    pub(crate) fn price(self, values: &[Vec<u8>]) -> u64 {
        /// Of a byte that is read, compared, sorted and written.
        const BYTE: u64 = 40;
        let bytes: u64 = values.iter().map(|value| value.len() as u64).sum();
        let work = match values {
            // Each of the one is compared with each of the other.
            [a, b] if self.name().starts_with("strings.any_") => (a.len() as u64).saturating_mul(b.len() as u64) / 8,
            // Verbs may be three bytes that make a whole field.
            [pattern, _] if self.name() == "sprintf" => (pattern.len() as u64).saturating_mul(128),
            _ => 0,
        };
        bytes.saturating_mul(BYTE).saturating_add(work).saturating_add(200)
    }

    /// Computes. `now` is the time of the request in milliseconds.
    ///
    /// # Errors
    /// Why there is no value.
    pub(crate) fn compute(self, values: &[Vec<u8>], now: i64, work: &mut Work) -> Result<Answer, String> {
        let read = |text: &Vec<u8>| {
            let text = std::str::from_utf8(text).map_err(|_| "it is given something that is not UTF-8".to_owned())?;
            Term::read(text)
        };
        let terms = values.iter().map(read).collect::<Result<Vec<Term>, String>>()?;
        let answer = match (self.0.call, terms.as_slice()) {
            (Call::Working(values, call), terms) if terms.len() == values => {
                return call(terms, work).map(Answer::from);
            }
            (Call::Now, []) => Ok(json!(now.saturating_mul(1_000_000))),
            (Call::Trace, [_]) => Ok(Value::Bool(true)),
            (Call::One(call), [a]) => call(a),
            (Call::Two(call), [a, b]) => call(a, b),
            (Call::Four(call), [a, b, c, d]) => call(a, b, c, d),
            _ => Err(format!("it takes {} values", self.arguments())),
        };
        answer.map(Answer::from)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ask(name: &str, values: &[&str]) -> Result<Value, String> {
        let values: Vec<Vec<u8>> = values.iter().map(|value| value.as_bytes().to_vec()).collect();
        let answer = Builtin::named(name).unwrap().compute(&values, 1_790_000_000_000, &mut Work::new(100_000_000))?;
        assert!(answer.json, "{answer:?}");
        serde_json::from_str(&answer.text).map_err(|error| error.to_string())
    }

    /// As OPA 1.22 answers.
    #[test]
    fn functions_give_the_answers_of_opa() {
        for (name, values, answer) in [
            ("time.now_ns", &[][..], json!(1_790_000_000_000_000_000_i64)),
            ("trace", &[r#""x""#], json!(true)),
            ("strings.any_prefix_match", &[r#""docker.io/a""#, r#"["quay.io/", "docker.io/"]"#], json!(true)),
            ("strings.any_prefix_match", &[r#"["a", "b"]"#, r#""c""#], json!(false)),
            ("strings.any_prefix_match", &[r#"{"xa", "b"}"#, r#"{"x", "y"}"#], json!(true)),
            ("strings.any_prefix_match", &[r#""a""#, r#"[]"#], json!(false)),
            ("strings.any_prefix_match", &[r#"set()"#, r#"["a"]"#], json!(false)),
            ("strings.any_prefix_match", &[r#""a""#, r#""""#], json!(true)),
            ("strings.any_suffix_match", &[r#""a:latest""#, r#"[":latest"]"#], json!(true)),
            ("strings.any_suffix_match", &[r#"["latest:a"]"#, r#"{":latest"}"#], json!(false)),
            ("strings.count", &[r#""cheese""#, r#""e""#], json!(3)),
            ("strings.count", &[r#""abc""#, r#""""#], json!(4)),
            ("semver.compare", &[r#""1.0.0""#, r#""1.0.1""#], json!(-1)),
            ("semver.compare", &[r#""v1.2.3""#, r#""1.2.3""#], json!(0)),
            ("semver.compare", &[r#""1.0.0-alpha""#, r#""1.0.0-alpha.1""#], json!(-1)),
            ("semver.compare", &[r#""1.0.0-beta.11""#, r#""1.0.0-beta.2""#], json!(1)),
            ("semver.compare", &[r#""1.0.0-rc.1""#, r#""1.0.0""#], json!(-1)),
            ("semver.compare", &[r#""1.0.0+a""#, r#""1.0.0+b""#], json!(0)),
            ("semver.compare", &[r#""1.10.0""#, r#""1.9.0""#], json!(1)),
            ("semver.is_valid", &[r#""v1.2.3""#], json!(true)),
            ("semver.is_valid", &[r#""1.2""#], json!(false)),
            ("semver.is_valid", &[r#""01.2.3""#], json!(false)),
            ("semver.is_valid", &[r#""1.2.3-01""#], json!(false)),
            ("semver.is_valid", &[r#""1.2.3-0""#], json!(true)),
            ("semver.is_valid", &[r#""1.2.3+""#], json!(false)),
            ("semver.is_valid", &[r#""1.2.3-a-b""#], json!(true)),
            ("semver.is_valid", &[r#""vv1.2.3""#], json!(false)),
            ("semver.is_valid", &[r#""99999999999999999999.0.0""#], json!(false)),
            ("semver.is_valid", &["5"], json!(false)),
            ("units.parse", &[r#""10""#], json!(10)),
            ("units.parse", &[r#""10K""#], json!(10_000)),
            ("units.parse", &[r#""10Ki""#], json!(10_240)),
            ("units.parse", &[r#""1.5Gi""#], json!(1_610_612_736)),
            ("units.parse", &[r#""1MI""#], json!(1_048_576)),
            ("units.parse", &[r#""1e3K""#], json!(1_000_000)),
            ("units.parse", &[r#""1E""#], json!(1_000_000_000_000_000_000_i64)),
            ("units.parse", &[r#""12E""#], json!(12_000_000_000_000_000_000_u64)),
            ("units.parse", &[r#""100m""#], json!(0.1)),
            ("units.parse", &[r#""0.1m""#], json!(0.0001)),
            ("units.parse", &[r#""1.5""#], json!(1.5)),
            ("units.parse", &[r#""1.23456789012m""#], json!(0.001_234_567_9)),
            ("units.parse", &[r#""5.""#], json!(5)),
            ("units.parse", &[r#"".5""#], json!(0.5)),
            ("units.parse", &[r#""-1K""#], json!(-1000)),
            ("units.parse", &[r#""\"10K\"""#], json!(10_000)),
            ("units.parse_bytes", &[r#""1KiB""#], json!(1024)),
            ("units.parse_bytes", &[r#""1.5MiB""#], json!(1_572_864)),
            ("units.parse_bytes", &[r#""100m""#], json!(100_000_000)),
            ("units.parse_bytes", &[r#""1.9""#], json!(1)),
            ("units.parse_bytes", &[r#""10eib""#], json!(11_529_215_046_068_469_760_u64)),
            ("hex.encode", &[r#""häi""#], json!("68c3a469")),
            ("hex.decode", &[r#""68C3A4""#], json!("hä")),
            ("urlquery.encode", &[r#""a b&c=ä/~*-._+""#], json!("a+b%26c%3D%C3%A4%2F~%2A-._%2B")),
            ("urlquery.decode", &[r#""a+b%26c%3d%C3%A4""#], json!("a b&c=ä")),
            ("urlquery.encode_object", &[r#"{"b":["x","y"],"a":"1 2"}"#], json!("a=1+2&b=x&b=y")),
            ("urlquery.decode_object", &[r#""a=1&b=2&a=3""#], json!({"a": ["1", "3"], "b": ["2"]})),
            ("crypto.sha256", &[r#""abc""#], json!("ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad")),
            ("time.parse_rfc3339_ns", &[r#""2026-11-22T01:02:03.5Z""#], json!(1_795_309_323_500_000_000_i64)),
            ("time.parse_rfc3339_ns", &[r#""2026-11-22T01:02:03+02:00""#], json!(1_795_302_123_000_000_000_i64)),
            ("time.parse_rfc3339_ns", &[r#""2026-02-20T23:02:10.5+24:00""#], json!(1_771_542_130_500_000_000_i64)),
            ("time.parse_rfc3339_ns", &[r#""2026-02-20T23:02:10,5Z""#], json!(1_771_628_530_500_000_000_i64)),
            ("time.date", &["1763773323500000000"], json!([2025, 11, 22])),
            ("time.clock", &["1763773323500000000"], json!([1, 2, 3])),
            ("time.weekday", &["1763773323500000000"], json!("Saturday")),
            ("time.date", &[r#"[1763773323500000000, "UTC"]"#], json!([2025, 11, 22])),
            ("time.date", &[r#"[0, ""]"#], json!([1970, 1, 1])),
            ("time.date", &["-1"], json!([1969, 12, 31])),
            ("time.clock", &["-1"], json!([23, 59, 59])),
            ("time.weekday", &["-1"], json!("Wednesday")),
            ("time.add_date", &["1769817600000000000", "0", "1", "0"], json!(1_772_496_000_000_000_000_i64)),
            ("time.add_date", &["1769817600000000000", "-1", "-13", "40"], json!(1_707_436_800_000_000_000_i64)),
            ("time.add_date", &["1709164800000000000", "1", "0", "0"], json!(1_740_787_200_000_000_000_i64)),
            ("time.diff", &["1769817600000000000", "1709164800000000000"], json!([1, 11, 2, 0, 0, 0])),
            ("time.diff", &["1709164800000000000", "1769817612000000000"], json!([1, 11, 2, 0, 0, 12])),
            ("time.parse_duration_ns", &[r#""1.5h""#], json!(5_400_000_000_000_i64)),
            ("time.parse_duration_ns", &[r#""-2m3s""#], json!(-123_000_000_000_i64)),
            ("time.parse_duration_ns", &[r#""3µs""#], json!(3000)),
            ("time.parse_duration_ns", &[r#""1h2m3s4ms""#], json!(3_723_004_000_000_i64)),
            ("time.parse_duration_ns", &[r#""0""#], json!(0)),
            ("time.parse_duration_ns", &[r#""2w""#], json!(1_209_600_000_000_000_i64)),
            ("time.parse_duration_ns", &[r#""1y""#], json!(31_536_000_000_000_000_i64)),
            ("time.parse_duration_ns", &[r#"".5s""#], json!(500_000_000)),
            ("time.parse_duration_ns", &[r#""1.s""#], json!(1_000_000_000)),
            ("regex.split", &[r#""/""#, r#""a/b""#], json!(["a", "b"])),
            ("re_match", &[r#""^a""#, r#""ab""#], json!(true)),
            ("json.patch", &[r#"{"a":1}"#, r#"[{"op":"remove","path":"/a"}]"#], json!({})),
            ("yaml.unmarshal", &[r#""a: 1""#], json!({"a": 1})),
            ("base64url.encode_no_pad", &[r#""a?>""#], json!("YT8-")),
            ("base64url.encode_no_pad", &[r#""a""#], json!("YQ")),
            ("crypto.sha1", &[r#""abc""#], json!("a9993e364706816aba3e25717850c26c9cd0d89d")),
            ("crypto.hmac.sha1", &[r#""foo""#, r#""bar""#], json!("85d155c55ed286a300bd1cf124de08d87e914f3a")),
            (
                "crypto.hmac.sha256",
                &[r#""foo""#, r#""bar""#],
                json!("147933218aaabc0b8b10a2b3a5c34684c8d94341bcf10a4736dc7270f7741851"),
            ),
            ("crypto.hmac.equal", &[r#""a""#, r#""a""#], json!(true)),
            ("crypto.hmac.equal", &[r#""a""#, r#""b""#], json!(false)),
            ("glob.quote_meta", &[r#""a*?[b]{c}\\-!.""#], json!(r"a\*\?\[b\]\{c\}\\-!.")),
            ("strings.split_n", &[r#""a.b.c""#, r#"".""#, "2"], json!(["a", "b"])),
            ("strings.split_n", &[r#""a.b.c""#, r#"".""#, "-2"], json!(["b", "c"])),
            ("strings.split_n", &[r#""äb""#, r#""""#, "9"], json!(["ä", "b"])),
            ("strings.split_n", &[r#""a""#, r#"".""#, "0"], json!([])),
            ("numbers.range_step", &["0", "10", "4"], json!([0, 4, 8])),
            ("numbers.range_step", &["3", "-3", "3"], json!([3, 0, -3])),
            ("net.cidr_is_valid", &[r#""10.0.0.0/8""#], json!(true)),
            ("net.cidr_is_valid", &[r#""::1/129""#], json!(false)),
            ("net.cidr_is_valid", &[r#""10.0.0.1""#], json!(false)),
            ("net.cidr_is_valid", &["5"], json!(false)),
        ] {
            assert_eq!(ask(name, values), Ok(answer), "{name} {values:?}");
        }
    }

    /// As OPA 1.22 answers.
    #[test]
    fn some_answers_are_sets() {
        let ask = |name: &str, values: &[&str]| {
            let values: Vec<Vec<u8>> = values.iter().map(|value| value.as_bytes().to_vec()).collect();
            Builtin::named(name).unwrap().compute(&values, 0, &mut Work::new(1_000_000)).unwrap()
        };
        for (name, values, answer) in [
            ("net.cidr_expand", &[r#""10.0.0.7/31""#][..], r#"{"10.0.0.6", "10.0.0.7"}"#),
            ("net.cidr_expand", &[r#""2001:DB8::/127""#], r#"{"2001:db8::", "2001:db8::1"}"#),
            (
                "net.cidr_contains_matches",
                &[r#"["10.0.0.0/8", "1.0.0.0/8"]"#, r#"{"10.1.0.0/16", "1.2.3.4", "::1"}"#],
                r#"{[0, "10.1.0.0/16"], [1, "1.2.3.4"]}"#,
            ),
            (
                "net.cidr_contains_matches",
                &[r#"{["10.0.0.0/8", "x"]}"#, r#"{"a": "10.0.0.0/7", "b": ["10.0.0.1"]}"#],
                r#"{[["10.0.0.0/8", "x"], "b"]}"#,
            ),
            ("net.cidr_contains_matches", &[r#""10.0.0.0/8""#, "[]"], "set()"),
            ("json.patch", &["{}", r#"[{"op":"add","path":"/s","value":{1,{"x"}}}]"#], r#"{"s": {1, {"x"}}}"#),
        ] {
            assert_eq!(ask(name, values), Answer { text: answer.to_owned(), json: false }, "{name} {values:?}");
        }
    }

    #[test]
    fn what_has_no_answer_is_an_error() {
        for (name, values) in [
            ("strings.any_prefix_match", &["5", r#"["a"]"#][..]),
            ("strings.any_prefix_match", &[r#""a""#, "[5]"]),
            ("strings.any_suffix_match", &[r#""a""#, "null"]),
            ("semver.compare", &[r#""1.0""#, r#""1.0.0""#]),
            ("semver.compare", &["1", r#""1.0.0""#]),
            ("units.parse", &[r#""10 K""#]),
            ("units.parse", &[r#""K""#]),
            ("units.parse", &[r#""""#]),
            ("units.parse", &[r#""10X""#]),
            ("units.parse", &[r#""1.2.3""#]),
            ("units.parse", &[r#"".""#]),
            ("units.parse", &[r#""1e999999999""#]),
            ("units.parse", &[r#""1e-999999999""#]),
            ("units.parse", &[r#""99999999999999999999999999999999999999999""#]),
            ("units.parse", &["10"]),
            ("hex.decode", &[r#""6""#]),
            ("hex.decode", &[r#""zz""#]),
            ("hex.decode", &[r#""ff""#]),
            ("urlquery.decode", &[r#""%zz""#]),
            ("urlquery.decode", &[r#""%f""#]),
            ("time.parse_rfc3339_ns", &[r#""2026-11-22t01:02:03z""#]),
            ("time.parse_rfc3339_ns", &[r#""2026-11-22 01:02:03Z""#]),
            ("time.parse_rfc3339_ns", &[r#""2026-02-30T01:02:03Z""#]),
            ("time.parse_rfc3339_ns", &[r#""2026-02-20T24:02:03Z""#]),
            ("time.parse_rfc3339_ns", &[r#""2026-02-20T23:02:60Z""#]),
            ("time.parse_rfc3339_ns", &[r#""1600-02-20T23:02:00Z""#]),
            ("time.parse_rfc3339_ns", &[r#""2026-02-20T23:02:00""#]),
            ("time.parse_rfc3339_ns", &[r#""2026-02-20T23:02:00.Z""#]),
            ("time.parse_rfc3339_ns", &[r#""äääääääääääääääääääää""#]),
            ("time.date", &["1.5"]),
            ("time.date", &[r#"[0, "Europe/Berlin"]"#]),
            ("time.date", &["[0]"]),
            ("time.add_date", &["0", "9223372036854775807", "0", "0"]),
            ("time.add_date", &["0", "0", "9223372036854775807", "0"]),
            ("time.add_date", &["0", "0", "0", "9223372036854775807"]),
            ("time.add_date", &["0", "300", "0", "0"]),
            ("time.parse_duration_ns", &[r#""1""#]),
            ("time.parse_duration_ns", &[r#""""#]),
            ("time.parse_duration_ns", &[r#""1h2""#]),
            ("time.parse_duration_ns", &[r#""9999999999999h""#]),
            ("sprintf", &[r#""%d""#]),
            ("regex.split", &[r#""(""#, r#""a""#]),
            ("regex.find_n", &[r#""a""#, r#""a""#, "1.5"]),
            ("regex.match", &[r#""a""#, "5"]),
            ("yaml.unmarshal", &["5"]),
            ("crypto.sha1", &["5"]),
            ("numbers.range_step", &["0", "10", "0"]),
            ("numbers.range_step", &["0", "10", "-1"]),
            ("numbers.range_step", &["0", "9223372036854775807", "1"]),
            ("net.cidr_expand", &[r#""0.0.0.0/0""#]),
            ("net.cidr_expand", &[r#""::/0""#]),
            ("net.cidr_expand", &[r#""::ffff:1.2.3.4/128""#]),
            ("net.cidr_contains_matches", &[r#""x""#, r#""1.2.3.4""#]),
            ("net.cidr_contains_matches", &[r#""10.0.0.0/8""#, r#"[[]]"#]),
            ("io.jwt.decode", &[r#""a.b""#]),
        ] {
            assert!(ask(name, values).is_err(), "{name} {values:?}");
        }
    }

    #[test]
    fn names_are_sorted_and_none_is_there_twice() {
        assert!(ALL.is_sorted_by(|a, b| a.name < b.name));
        assert!(Builtin::named("http.send").is_none() && Builtin::named("opa.runtime").is_none());
        for name in ["rand.intn", "uuid.rfc4122", "net.lookup_ip_addr", "io.jwt.decode_verify", "regex.globs_match"] {
            assert!(Builtin::named(name).is_none(), "{name}");
        }
    }

    #[test]
    fn work_costs_what_it_touches() {
        let price = |name: &str, lengths: [usize; 2]| {
            Builtin::named(name).unwrap().price(&lengths.map(|length| vec![b'x'; length]))
        };
        assert!(price("sprintf", [0, 0]) >= 200);
        assert!(price("sprintf", [1000, 0]) >= 100_000, "widths make long texts of short patterns");
        assert!(price("strings.any_prefix_match", [100_000, 100_000]) > 1_000_000_000, "all with all");
    }
}
