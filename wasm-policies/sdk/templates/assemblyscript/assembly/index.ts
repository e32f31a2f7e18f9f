// Clusters are let in under names that begin as they must.
//
// A policy in AssemblyScript is a WASI command: "describe" prints its manifest, "decide" reads a request from stdin, with
// its settings as one more member, and prints a decision. docs/policies/contract.md of kubectl-ocm describes all members.
import { Json, quote } from "./json";
import { argument, print, stdin } from "./wasi";

const MANIFEST = `{
  "contract": "ocm:policy@0.1.0",
  "name": "{{name}}",
  "version": "0.1.0",
  "description": "Lets in clusters whose names begin as they must",
  "operations": ["create", "accept", "join"],
  "reasons": [{"code": "NamePrefix", "description": "The name does not begin as it must"}],
  "settingsSchema": {"type": "object", "properties": {
    "prefixes": {"type": "array", "items": {"type": "string"}, "description": "What a name may begin with; nothing: anything"}}}
}`;

function decide(request: Json): string {
  const cluster = request.get("cluster");
  if (cluster.isNull) return `{"verdict": "no-opinion"}`;
  const name = cluster.get("name").text;
  const prefixes = request.get("settings").get("prefixes").items;
  const known = new Array<string>();
  for (let i = 0; i < prefixes.length; i++) {
    if (name.startsWith(prefixes[i].text)) return `{"verdict": "allow"}`;
    known.push(prefixes[i].text);
  }
  if (known.length == 0) return `{"verdict": "allow"}`;
  const message = quote("the name must begin with one of: " + known.join(", "));
  return `{"verdict": "deny", "reasons": [{"code": "NamePrefix", "message": ${message}, "field": "metadata.name"}]}`;
}

export function _start(): void {
  print(argument(1) == "describe" ? MANIFEST : decide(Json.parse(stdin())));
}
