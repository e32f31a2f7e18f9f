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
  "settingsSchema": {"type": "object", "additionalProperties": false, "properties": {
    "prefixes": {"type": "array", "items": {"type": "string", "minLength": 1},
                 "description": "What a name may begin with; nothing: anything"}}}
}`;

// Nothing else looks whether settings are what the schema says: a misspelt one must end in an error, not let every name in.
function configure(settings: Json): Array<string> {
  assert(settings.isObject, "the settings must be an object");
  const prefixes = new Array<string>();
  for (let i = 0; i < settings.keys.length; i++) {
    assert(settings.keys[i] == "prefixes", "there is no such setting: " + settings.keys[i]);
    assert(settings.items[i].isList, "prefixes must be a list");
    const given = settings.items[i].items;
    for (let j = 0; j < given.length; j++) {
      assert(given[j].isText, "prefixes must be texts");
      assert(given[j].text.length > 0, "prefixes: an empty prefix fits every name; leave prefixes out instead");
      prefixes.push(given[j].text);
    }
  }
  return prefixes;
}

function decide(request: Json): string {
  const prefixes = configure(request.get("settings"));
  const cluster = request.get("cluster");
  if (cluster.isNull) return `{"verdict": "no-opinion"}`;
  if (prefixes.length == 0) return `{"verdict": "allow"}`;
  const name = cluster.get("name").text;
  for (let i = 0; i < prefixes.length; i++) {
    if (name.startsWith(prefixes[i])) return `{"verdict": "allow"}`;
  }
  const message = quote("the name must begin with one of: " + prefixes.join(", "));
  return `{"verdict": "deny", "reasons": [{"code": "NamePrefix", "message": ${message}, "field": "metadata.name"}]}`;
}

export function _start(): void {
  print(argument(1) == "describe" ? MANIFEST : decide(Json.parse(stdin())));
}
