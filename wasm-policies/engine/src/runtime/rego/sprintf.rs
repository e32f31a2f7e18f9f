//! The built-in function `sprintf`: the patterns of Go's package fmt, for the values that Rego has.
//!
//! Rego gives it strings, whole and broken numbers; every other value as the text that Rego writes it with. A verb that
//! does not fit its value is shown as Go shows it. Verbs and flags that messages are not made with are refused.

use serde_json::Value;

use super::term::Term;

/// Nobody needs wider fields, and a width costs no more than two bytes.
const WIDEST: usize = 1024;

/// A value as the pattern sees it.
enum Given {
    Text(String),
    /// A whole number, of any size.
    Whole(String),
    Broken(f64),
}

impl Given {
    fn of(term: &Term) -> Result<Self, String> {
        Ok(match term {
            Term::Text(text) => Self::Text(text.clone()),
            Term::Number(number) if number.contains(['.', 'e', 'E']) => {
                Self::Broken(number.parse().map_err(|_| format!("{number} must be a number"))?)
            }
            Term::Number(number) => Self::Whole(number.clone()),
            other => Self::Text(other.to_string()),
        })
    }

    /// Its type in Go.
    fn kind(&self) -> &'static str {
        match self {
            Self::Text(_) => "string",
            Self::Whole(number) if number.parse::<i64>().is_err() => "*big.Int",
            Self::Whole(_) => "int64",
            Self::Broken(_) => "float64",
        }
    }
}

/// What stands between `%` and the verb.
#[derive(Clone, Copy, Default)]
struct Form {
    left: bool,
    plus: bool,
    space: bool,
    zero: bool,
    width: usize,
    precision: Option<usize>,
}

/// Fills a pattern with the members of an array.
pub(super) fn sprintf(pattern: &Term, values: &Term) -> Result<Value, String> {
    let pattern = pattern.text()?;
    let Term::Array(values) = values else { return Err(format!("{} must be an array", values.shown())) };
    let mut values = values.iter();
    let mut out = String::new();
    let mut rest = pattern;
    while let Some(at) = rest.find('%') {
        out.push_str(&rest[..at]);
        rest = &rest[at + 1..];
        let form = form(&mut rest)?;
        let Some(verb) = rest.chars().next() else {
            out.push_str("%!(NOVERB)");
            break;
        };
        rest = &rest[verb.len_utf8()..];
        match verb {
            '%' => out.push('%'),
            verb if !verb.is_ascii_alphabetic() => return Err(format!("%{verb} is not supported")),
            verb => match values.next() {
                None => out.push_str(&format!("%!{verb}(MISSING)")),
                Some(value) => out.push_str(&one(verb, form, &Given::of(value)?)?),
            },
        }
    }
    out.push_str(rest);
    let extra = values.map(|value| {
        let given = Given::of(value)?;
        Ok(format!("{}={}", given.kind(), one('v', Form::default(), &given)?))
    });
    let extra = extra.collect::<Result<Vec<String>, String>>()?;
    if !extra.is_empty() {
        out.push_str(&format!("%!(EXTRA {})", extra.join(", ")));
    }
    Ok(out.into())
}

/// Reads flags, width and precision.
fn form(rest: &mut &str) -> Result<Form, String> {
    let mut form = Form::default();
    loop {
        match rest.as_bytes().first() {
            Some(b'-') => form.left = true,
            Some(b'+') => form.plus = true,
            Some(b' ') => form.space = true,
            Some(b'0') => form.zero = true,
            Some(other @ (b'#' | b'*' | b'[')) => return Err(format!("%{} is not supported", char::from(*other))),
            _ => break,
        }
        *rest = &rest[1..];
    }
    form.width = number(rest)?.unwrap_or(0);
    if let Some(behind) = rest.strip_prefix('.') {
        *rest = behind;
        form.precision = Some(number(rest)?.unwrap_or(0));
    }
    match rest.as_bytes().first() {
        Some(other @ (b'*' | b'[')) => Err(format!("%{} is not supported", char::from(*other))),
        _ => Ok(form),
    }
}

fn number(rest: &mut &str) -> Result<Option<usize>, String> {
    let end = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
    let (digits, behind) = rest.split_at(end);
    *rest = behind;
    if digits.is_empty() {
        return Ok(None);
    }
    let number = digits.parse().ok().filter(|number| *number <= WIDEST);
    number.map(Some).ok_or_else(|| format!("a width of {digits} is not supported"))
}

fn one(verb: char, form: Form, given: &Given) -> Result<String, String> {
    Ok(match (verb, given) {
        ('v' | 's', Given::Text(text)) => pad(form, "", &cut(text, form)),
        ('q', Given::Text(text)) => pad(form, "", &quoted(&cut(text, form))?),
        ('x' | 'X', Given::Text(text)) => {
            let bytes = text.bytes().take(form.precision.unwrap_or(usize::MAX));
            let hex: String = bytes.map(|byte| format!("{byte:02x}")).collect();
            pad(form, "", &cased(verb, hex))
        }
        ('v' | 'd', Given::Whole(number)) => whole(form, number),
        ('x' | 'X', Given::Whole(text)) => {
            let number: i128 = text.parse().map_err(|_| format!("%{verb} of {text} is not supported"))?;
            let sign = if number < 0 { "-" } else { "" };
            whole(form, &cased(verb, format!("{sign}{:x}", number.unsigned_abs())))
        }
        ('f' | 'F', Given::Broken(number)) => {
            let digits = format!("{:.*}", form.precision.unwrap_or(6), number.abs());
            signed(form, number.is_sign_negative(), &digits)
        }
        ('v' | 'g', Given::Broken(number)) if form.precision.is_none() => {
            signed(form, number.is_sign_negative(), &shortest(number.abs()))
        }
        ('c' | 'o' | 'O' | 'b' | 'U' | 'e' | 'E' | 'g' | 'G' | 'T' | 'p' | 'w', _)
        | ('q', Given::Whole(_))
        | ('v' | 'x' | 'X', Given::Broken(_)) => {
            return Err(format!("%{verb} of a {} is not supported", given.kind()));
        }
        // A verb that does not fit.
        (verb, given) => format!("%!{verb}({}={})", given.kind(), one('v', form, given)?),
    })
}

fn cased(verb: char, hex: String) -> String {
    if verb == 'X' { hex.to_ascii_uppercase() } else { hex }
}

fn cut(text: &str, form: Form) -> String {
    text.chars().take(form.precision.unwrap_or(usize::MAX)).collect()
}

/// Quoted in the same way by JSON and by Go, as long as there is nothing special in it.
fn quoted(text: &str) -> Result<String, String> {
    if text.chars().any(|c| !c.is_alphanumeric() && !c.is_ascii_graphic() && c != ' ') {
        return Err("%q of a text with special characters is not supported".to_owned());
    }
    Ok(Value::from(text).to_string())
}

fn whole(form: Form, number: &str) -> String {
    let (negative, digits) = number.strip_prefix('-').map_or((false, number), |digits| (true, digits));
    match form.precision {
        // At least so many digits, and then zeros fill no field.
        Some(precision) => signed(Form { zero: false, ..form }, negative, &format!("{digits:0>precision$}")),
        None => signed(form, negative, digits),
    }
}

fn signed(form: Form, negative: bool, digits: &str) -> String {
    let sign = match (negative, form.plus, form.space) {
        (true, ..) => "-",
        (_, true, _) => "+",
        (.., true) => " ",
        _ => "",
    };
    pad(form, sign, digits)
}

/// Fills a field: zeros stand behind the sign.
fn pad(form: Form, sign: &str, text: &str) -> String {
    let missing = form.width.saturating_sub(sign.chars().count() + text.chars().count());
    match (form.left, form.zero) {
        (true, _) => format!("{sign}{text}{}", " ".repeat(missing)),
        (_, true) => format!("{sign}{}{text}", "0".repeat(missing)),
        _ => format!("{}{sign}{text}", " ".repeat(missing)),
    }
}

/// A number as Go writes it with `%v`: as few digits as tell it from all others, with an exponent where that is large.
fn shortest(number: f64) -> String {
    let scientific = format!("{number:e}");
    let (mantissa, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    match (-4..21).contains(&exponent) {
        true => number.to_string(),
        false => format!("{mantissa}e{}{:02}", if exponent < 0 { '-' } else { '+' }, exponent.unsigned_abs()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn made(pattern: &str, values: &str) -> Result<String, String> {
        let made = sprintf(&Term::Text(pattern.to_owned()), &Term::read(values)?)?;
        Ok(made.as_str().unwrap().to_owned())
    }

    /// As OPA 1.22 makes them.
    #[test]
    fn patterns_are_filled_as_they_are_in_go() {
        for (pattern, values, text) in [
            ("no dots: %v", r#"["a.b"]"#, "no dots: a.b"),
            ("%s of %d, 100%%", r#"["a\"],", 5]"#, "a\"], of 5, 100%"),
            ("%v", r#"[{"a":[1,2],"b":",:"}]"#, r#"{"a": [1, 2], "b": ",:"}"#),
            ("%v %v", r#"[{"y","x"},set()]"#, r#"{"x", "y"} set()"#),
            ("%v %v %v", "[1.5, true, null]", "1.5 true null"),
            ("%v", "[1.0]", "1"),
            ("%v", "[1e21]", "1e+21"),
            ("%v", "[0.00001]", "1e-05"),
            ("%q", r#"["it's \"x\""]"#, r#""it's \"x\"""#),
            ("nothing", "[]", "nothing"),
            ("%t", "[true]", "%!t(string=true)"),
            ("%t", r#"["x"]"#, "%!t(string=x)"),
            ("%5t|", "[true]", "%!t(string= true)|"),
            ("%d", r#"["x"]"#, "%!d(string=x)"),
            ("%d", "[[1]]", "%!d(string=[1])"),
            ("%d", "[1.5]", "%!d(float64=1.5)"),
            ("%6d|", "[1.5]", "%!d(float64=   1.5)|"),
            ("%s", "[5]", "%!s(int64=5)"),
            ("%s", "[1.5]", "%!s(float64=1.5)"),
            ("%s", "[[1]]", "[1]"),
            ("%z", "[1]", "%!z(int64=1)"),
            ("%d %d", "[1]", "1 %!d(MISSING)"),
            ("%d", r#"[1,"b"]"#, "1%!(EXTRA string=b)"),
            ("%", "[]", "%!(NOVERB)"),
            ("%5d|", "[42]", "   42|"),
            ("%-5d|", "[42]", "42   |"),
            ("%05d|", "[-42]", "-0042|"),
            ("%10d|", "[-5]", "        -5|"),
            ("%+d", "[42]", "+42"),
            ("% d", "[5]", " 5"),
            ("%d", "[123456789012345678901234567890]", "123456789012345678901234567890"),
            ("%x", "[255]", "ff"),
            ("%X", "[255]", "FF"),
            ("%x", "[-255]", "-ff"),
            ("%x", r#"["hi"]"#, "6869"),
            ("%x", r#"["ä"]"#, "c3a4"),
            ("%f", "[1.5]", "1.500000"),
            ("%f", "[0.1]", "0.100000"),
            ("%f", "[2]", "%!f(int64=2)"),
            ("%.2f", "[3.14159]", "3.14"),
            ("%8.3f|", "[3.14159]", "   3.142|"),
            ("%-8.1f|", "[2.25]", "2.2     |"),
            ("%08.3f", "[-3.14159]", "-003.142"),
            ("%.0f", "[2.5]", "2"),
            ("%.0f", "[3.5]", "4"),
            ("%+.1f", "[1.25]", "+1.2"),
            ("%5s|", r#"["äb"]"#, "   äb|"),
            ("%-5s|", r#"["ab"]"#, "ab   |"),
            ("%05s", r#"["ab"]"#, "000ab"),
            ("%.1s|", r#"["ab"]"#, "a|"),
            ("%5v|", "[true]", " true|"),
        ] {
            assert_eq!(made(pattern, values).as_deref(), Ok(text), "{pattern} {values}");
        }
    }

    #[test]
    fn what_is_not_known_is_no_message() {
        for (pattern, values) in [
            ("%*d", "[5,3]"),
            ("%[1]d", "[5]"),
            ("%#v", "[1]"),
            ("%c", "[65]"),
            ("%q", "[5]"),
            ("%q", r#"["\u0001"]"#),
            ("%1025d", "[1]"),
            ("%.99999999999999999999f", "[1.5]"),
            ("%v", "7"),
            ("%ä", "[1]"),
        ] {
            assert!(made(pattern, values).is_err(), "{pattern} {values}");
        }
        assert!(sprintf(&Term::Null, &Term::Array(Vec::new())).is_err());
    }
}
