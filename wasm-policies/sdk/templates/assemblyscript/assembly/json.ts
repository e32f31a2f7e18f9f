// As much of JSON as a policy needs to read a request and to write a decision.

export class Json {
  isNull: bool = false;
  isObject: bool = false;
  isList: bool = false;
  isText: bool = false;
  // Of strings their content, of numbers and booleans how they are written.
  text: string = "";
  items: Array<Json> = new Array<Json>();
  keys: Array<string> = new Array<string>();

  // A member of an object; null where there is none.
  get(key: string): Json {
    for (let i = this.keys.length - 1; i >= 0; i--) {
      if (this.keys[i] == key) return this.items[i];
    }
    return nothing();
  }

  static parse(text: string): Json {
    const reader = new Reader(text);
    const value = reader.value();
    reader.space();
    assert(reader.at == text.length, "something follows the request");
    return value;
  }
}

function nothing(): Json {
  const value = new Json();
  value.isNull = true;
  return value;
}

class Reader {
  at: i32 = 0;
  depth: i32 = 0;

  constructor(private source: string) {}

  peek(): i32 {
    return this.at < this.source.length ? this.source.charCodeAt(this.at) : -1;
  }

  space(): void {
    while (this.peek() == 32 || (this.peek() >= 9 && this.peek() <= 13)) this.at++;
  }

  expect(code: i32): void {
    assert(this.peek() == code, "the request is not valid JSON");
    this.at++;
  }

  value(): Json {
    this.space();
    assert(++this.depth < 100, "the request is nested too deeply");
    const code = this.peek();
    const value = new Json();
    if (code == 0x7b || code == 0x5b) {
      value.isObject = code == 0x7b;
      value.isList = code == 0x5b;
      const end = code + 2;
      this.at++;
      this.space();
      while (this.peek() != end) {
        if (value.items.length > 0) this.expect(0x2c);
        this.space();
        if (code == 0x7b) {
          value.keys.push(this.string());
          this.space();
          this.expect(0x3a);
        }
        value.items.push(this.value());
        this.space();
      }
      this.at++;
    } else if (code == 0x22) {
      value.isText = true;
      value.text = this.string();
    } else {
      const from = this.at;
      while (this.peek() > 32 && this.peek() != 0x2c && this.peek() != 0x5d && this.peek() != 0x7d) this.at++;
      assert(this.at > from, "the request is not valid JSON");
      value.text = this.source.substring(from, this.at);
      value.isNull = value.text == "null";
    }
    this.depth--;
    return value;
  }

  string(): string {
    this.expect(0x22);
    let text = "";
    let from = this.at;
    while (this.peek() != 0x22) {
      assert(this.peek() >= 0, "the request is not valid JSON");
      if (this.peek() != 0x5c) {
        this.at++;
        continue;
      }
      text += this.source.substring(from, this.at);
      const escape = this.source.charAt(this.at + 1);
      this.at += 2;
      if (escape == "u") {
        text += String.fromCharCode(<i32>parseInt(this.source.substring(this.at, this.at + 4), 16));
        this.at += 4;
      } else if (escape == "n") text += "\n";
      else if (escape == "t") text += "\t";
      else if (escape == "r") text += "\r";
      else if (escape == "b") text += "\b";
      else if (escape == "f") text += "\f";
      else text += escape;
      from = this.at;
    }
    text += this.source.substring(from, this.at);
    this.at++;
    return text;
  }
}

// A text as JSON.
export function quote(text: string): string {
  let out = '"';
  for (let i = 0; i < text.length; i++) {
    const code = text.charCodeAt(i);
    if (code == 0x22 || code == 0x5c) out += "\\" + text.charAt(i);
    else if (code < 32) out += "\\u" + code.toString(16).padStart(4, "0");
    else out += text.charAt(i);
  }
  return out + '"';
}
