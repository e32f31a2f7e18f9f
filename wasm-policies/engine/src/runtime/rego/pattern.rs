//! Regular expressions as Go reads them (package regexp/syntax, flags of Perl), written for the crate that finds matches.
//!
//! Both read most patterns, and some of them differently: classes within classes, `\<`, `{,5}`, white space, letters in
//! both cases. So each part is understood here as Go understands it and is written in the one way that the crate reads
//! as that. What Go understands and this does not, such as Unicode classes, is refused.

use regex_lite::{Regex, RegexBuilder};

use super::work::Work;

/// Bytes of a pattern.
const LONGEST: usize = 8 << 10;
/// Of a compiled pattern: its parts, and its parts times the groups that are remembered for each.
const MOST_PARTS: u64 = 8_192;
const MOST_SLOTS: u64 = 131_072;
/// Groups within groups.
const DEEPEST: usize = 40;
/// Copies of a part that Go allows, nested ones multiplied.
const MOST_COPIES: u64 = 1000;

/// Why a pattern is not compiled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Refused {
    /// Go does not compile it either.
    Invalid(String),
    /// Go does, perhaps.
    Unsupported(String),
}

impl From<Refused> for String {
    fn from(refused: Refused) -> Self {
        match refused {
            Refused::Invalid(why) => format!("this is no regular expression: {why}"),
            Refused::Unsupported(why) => format!("this regular expression is not supported: {why}"),
        }
    }
}

type Understood<T> = Result<T, Refused>;

fn invalid<T>(why: impl Into<String>) -> Understood<T> {
    Err(Refused::Invalid(why.into()))
}

fn unsupported<T>(why: impl Into<String>) -> Understood<T> {
    Err(Refused::Unsupported(why.into()))
}

/// A compiled pattern.
pub(super) struct Pattern {
    regex: Regex,
    /// Names of the groups, by number; the whole match is the first.
    names: Vec<Option<String>>,
    parts: u64,
}

/// Where a match and its groups begin and end.
pub(super) type Spans = Vec<Option<(usize, usize)>>;

impl Pattern {
    /// Compiles a pattern. Without groups, what a group has matched is not remembered.
    pub(super) fn new(pattern: &str, groups: bool, work: &mut Work) -> Result<Understood<Self>, String> {
        // Of a character that is read, and of a part that is compiled.
        const CHARACTER: u64 = 400;
        const PART: u64 = 1_000;
        if pattern.len() > LONGEST {
            return Ok(unsupported("it is too long"));
        }
        work.charge(pattern.len() as u64 * CHARACTER)?;
        let read = match Reader::read(pattern, groups) {
            Ok(read) => read,
            Err(refused) => return Ok(Err(refused)),
        };
        let slots = read.parts.saturating_mul(if groups { read.names.len() as u64 } else { 1 });
        if read.parts > MOST_PARTS || slots > MOST_SLOTS {
            return Ok(unsupported("it is too large"));
        }
        work.charge(read.parts.saturating_mul(PART).saturating_add(slots.saturating_mul(20)))?;
        let built = RegexBuilder::new(&read.written).size_limit(4 << 20).build();
        Ok(match built {
            Ok(regex) => Ok(Self { regex, names: read.names, parts: read.parts }),
            Err(error) => unsupported(error.to_string()),
        })
    }

    /// The number of the group of this name.
    pub(super) fn group(&self, name: &str) -> Option<usize> {
        self.names.iter().position(|known| known.as_deref() == Some(name))
    }

    /// The first match that begins at `from` or behind it, with its groups if they are wanted.
    pub(super) fn find(&self, text: &str, from: usize, groups: bool, work: &mut Work) -> Result<Option<Spans>, String> {
        // Of a part that may be looked at for a byte, and of a group that is remembered with it.
        const STEP: u64 = 16;
        const GROUP: u64 = 4;
        let remembered = if groups { self.names.len() as u64 } else { 1 };
        let rest = (text.len() - from) as u64 + 1;
        let step = STEP.saturating_add(remembered.saturating_mul(GROUP));
        work.charge(self.parts.saturating_mul(rest).saturating_mul(step))?;
        if !groups {
            return Ok(self.regex.find_at(text, from).map(|found| vec![Some((found.start(), found.end()))]));
        }
        let spans = self.regex.captures_at(text, from).map(|found| {
            let span = |number| found.get(number).map(|group| (group.start(), group.end()));
            (0..self.names.len()).map(span).collect()
        });
        Ok(spans)
    }

    /// Matches that do not overlap, at most so many. An empty one does not stand right behind another.
    pub(super) fn all(&self, text: &str, most: usize, groups: bool, work: &mut Work) -> Result<Vec<Spans>, String> {
        let mut found = Vec::new();
        let (mut at, mut last) = (0, None);
        while found.len() < most && at <= text.len() {
            let Some(spans) = self.find(text, at, groups, work)? else { break };
            let Some((start, end)) = spans.first().copied().flatten() else { break };
            let empty_behind_another = end == at && last == Some(start);
            // Something that is empty leaves its place by one character.
            let character = || text.get(end..).and_then(|rest| rest.chars().next()).map_or(1, char::len_utf8);
            at = if end == at { end + character() } else { end };
            last = Some(end);
            if !empty_behind_another {
                work.charge(100 + spans.len() as u64 * 40)?;
                found.push(spans);
            }
        }
        Ok(found)
    }
}

/// Which letters, in which way (the flags `i`, `m`, `s` and `U`).
#[derive(Clone, Copy, Default)]
struct Flags {
    any_case: bool,
    lines: bool,
    dot_is_all: bool,
    lazy: bool,
}

/// How large something is.
#[derive(Clone, Copy, Default)]
struct Size {
    parts: u64,
    /// How often a part of it is repeated within it.
    copies: u64,
}

impl Size {
    const ONE: Self = Self { parts: 1, copies: 1 };

    fn and(self, other: Self) -> Self {
        Self { parts: self.parts.saturating_add(other.parts), copies: self.copies.max(other.copies) }
    }
}

/// A group that has been opened and not been closed.
struct Group {
    /// Where it begins in what is written.
    begins: usize,
    outer: Flags,
    /// What has been read of it.
    size: Size,
    last: Last,
}

/// What was read last.
#[derive(Clone, Copy)]
enum Last {
    /// Nothing that can be repeated.
    Nothing,
    /// Something that begins there in what is written.
    Part { begins: usize, size: Size },
    /// Something that has been repeated already.
    Repeated,
    /// Flags for the rest of the group. Go repeats what stands before them.
    Flags,
}

/// Characters, as ranges.
type Class = Vec<(u32, u32)>;

const END: u32 = 0x10_ffff;

struct Reader<'p> {
    left: &'p str,
    flags: Flags,
    groups: bool,
    open: Vec<Group>,
    written: String,
    names: Vec<Option<String>>,
    parts: u64,
}

impl<'p> Reader<'p> {
    fn read(pattern: &'p str, groups: bool) -> Understood<Self> {
        let outermost = Group { begins: 0, outer: Flags::default(), size: Size::ONE, last: Last::Nothing };
        let mut reader = Self {
            left: pattern,
            flags: Flags::default(),
            groups,
            open: vec![outermost],
            written: String::with_capacity(pattern.len() * 2),
            names: vec![None],
            parts: 0,
        };
        while let Some(next) = reader.left.chars().next() {
            reader.one(next)?;
        }
        match reader.open.as_slice() {
            [outermost] => reader.parts = outermost.size.parts.saturating_add(1),
            _ => return invalid("a group has no end"),
        }
        Ok(reader)
    }

    fn one(&mut self, next: char) -> Understood<()> {
        match next {
            '(' => self.open(),
            ')' => self.close(),
            '|' => {
                self.skip(1);
                self.written.push('|');
                self.forget();
                Ok(())
            }
            '[' => {
                let class = self.class()?;
                self.part(&class_text(&class), class.len());
                Ok(())
            }
            '.' => {
                self.skip(1);
                let class = if self.flags.dot_is_all { vec![(0, END)] } else { vec![(0, 9), (11, END)] };
                self.part(&class_text(&class), 2);
                Ok(())
            }
            '^' => {
                self.skip(1);
                self.part(if self.flags.lines { "(?m:^)" } else { r"(?:\A)" }, 1);
                Ok(())
            }
            '$' => {
                self.skip(1);
                self.part(if self.flags.lines { "(?m:$)" } else { r"(?:\z)" }, 1);
                Ok(())
            }
            '*' | '+' | '?' => {
                self.skip(1);
                let (least, most) = match next {
                    '*' => (0, None),
                    '+' => (1, None),
                    _ => (0, Some(1)),
                };
                self.repeat(&next.to_string(), least, most)
            }
            '{' => match counts(self.left) {
                Some((length, least, most)) => {
                    self.skip(length);
                    let most_or_least = most.unwrap_or(least);
                    if least.max(most_or_least) > MOST_COPIES || most_or_least < least {
                        return invalid("a repetition is not possible");
                    }
                    let operator = most.map_or(format!("{{{least},}}"), |most| format!("{{{least},{most}}}"));
                    self.repeat(&operator, least, most)
                }
                None => {
                    self.skip(1);
                    self.literal('{')
                }
            },
            '\\' => self.backslash(),
            other => {
                self.skip(other.len_utf8());
                self.literal(other)
            }
        }
    }

    fn skip(&mut self, bytes: usize) {
        self.left = self.left.get(bytes..).unwrap_or_default();
    }

    fn taken(&mut self, prefix: &str) -> bool {
        let left = self.left.strip_prefix(prefix);
        self.left = left.unwrap_or(self.left);
        left.is_some()
    }

    /// The innermost group; the outermost is never closed.
    fn innermost(&mut self) -> Understood<&mut Group> {
        self.open.last_mut().ok_or_else(|| Refused::Invalid("a group ends that has not begun".to_owned()))
    }

    /// From here on, there is nothing to repeat.
    fn forget(&mut self) {
        if let Some(group) = self.open.last_mut() {
            group.last = Last::Nothing;
            group.size = group.size.and(Size::ONE);
        }
    }

    /// Writes something that matches one character, or a place between two.
    fn part(&mut self, text: &str, ranges: usize) {
        let size = Size { parts: 1 + ranges as u64, copies: 1 };
        let begins = self.written.len();
        self.written.push_str(text);
        if let Some(group) = self.open.last_mut() {
            group.size = group.size.and(size);
            group.last = Last::Part { begins, size };
        }
    }

    fn literal(&mut self, letter: char) -> Understood<()> {
        let mut class = Class::new();
        self.add(&mut class, u32::from(letter), u32::from(letter))?;
        match class.as_slice() {
            [_] if letter.is_ascii_alphanumeric() => self.part(&letter.to_string(), 0),
            _ => self.part(&class_text(&class), class.len() - 1),
        }
        Ok(())
    }

    fn repeat(&mut self, operator: &str, least: u64, most: Option<u64>) -> Understood<()> {
        let lazy = self.taken("?") != self.flags.lazy;
        let group = self.innermost()?;
        let (begins, size) = match group.last {
            Last::Part { begins, size } => (begins, size),
            Last::Nothing => return invalid("there is nothing to repeat"),
            Last::Repeated => return invalid("a repetition is repeated"),
            Last::Flags => return unsupported("it repeats flags"),
        };
        let counted = operator.starts_with('{');
        let times = most.unwrap_or(least).max(1);
        let copies = if counted { size.copies.saturating_mul(times) } else { size.copies };
        if copies > MOST_COPIES {
            return invalid("a repetition is repeated too often");
        }
        // Each copy has a way around it, and one that is repeated without an end has one more.
        let added = size.parts.saturating_add(1).saturating_mul(times.saturating_add(1)).saturating_add(2);
        group.size = group.size.and(Size { parts: added, copies });
        group.last = Last::Repeated;
        self.written.insert_str(begins, "(?:");
        self.written.push(')');
        self.written.push_str(operator);
        if lazy {
            self.written.push('?');
        }
        Ok(())
    }

    fn open(&mut self) -> Understood<()> {
        if self.open.len() > DEEPEST {
            return unsupported("its groups are nested too deeply");
        }
        self.skip(1);
        let outer = self.flags;
        let mut remembered = true;
        if self.taken("?P<") || self.taken("?<") {
            let Some((name, rest)) = self.left.split_once('>') else {
                return invalid("the name of a group has no end");
            };
            let plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
            if name.is_empty() || !name.bytes().all(plain) {
                return invalid("the name of a group is no name");
            }
            if self.names.iter().any(|known| known.as_deref() == Some(name)) {
                return unsupported("two groups have the same name");
            }
            self.left = rest;
            self.names.push(Some(name.to_owned()));
        } else if self.taken("?") {
            if !self.flags()? {
                self.innermost()?.last = Last::Flags;
                return Ok(());
            }
            remembered = false;
        } else {
            self.names.push(None);
        }
        let begins = self.written.len();
        self.written.push_str(if remembered && self.groups { "(" } else { "(?:" });
        self.open.push(Group { begins, outer, size: Size { parts: 3, copies: 1 }, last: Last::Nothing });
        Ok(())
    }

    /// Reads flags. Whether a group begins behind them.
    fn flags(&mut self) -> Understood<bool> {
        let (mut flags, mut value, mut seen) = (self.flags, true, true);
        while let Some(next) = self.left.chars().next() {
            self.skip(next.len_utf8());
            match next {
                'i' => flags.any_case = value,
                'm' => flags.lines = value,
                's' => flags.dot_is_all = value,
                'U' => flags.lazy = value,
                '-' if value => value = false,
                ':' | ')' if seen => {
                    self.flags = flags;
                    return Ok(next == ':');
                }
                _ => return invalid("a group begins with flags that are not known"),
            }
            // There must be some behind a minus.
            seen = next != '-';
        }
        invalid("flags have no end")
    }

    fn close(&mut self) -> Understood<()> {
        self.skip(1);
        let group = match self.open.pop() {
            Some(group) if !self.open.is_empty() => group,
            _ => return invalid("a group ends that has not begun"),
        };
        self.flags = group.outer;
        self.written.push(')');
        let around = self.innermost()?;
        around.size = around.size.and(group.size);
        around.last = Last::Part { begins: group.begins, size: group.size };
        Ok(())
    }

    fn backslash(&mut self) -> Understood<()> {
        let Some(next) = self.left.chars().nth(1) else { return invalid("it ends with a backslash") };
        match next {
            'A' | 'z' | 'b' | 'B' => {
                self.skip(2);
                self.part(&format!("(?:\\{next})"), 1);
                Ok(())
            }
            'Q' => {
                self.skip(2);
                let (quoted, rest) = self.left.split_once("\\E").unwrap_or((self.left, ""));
                self.left = rest;
                quoted.chars().try_for_each(|letter| self.literal(letter))
            }
            'd' | 'D' | 's' | 'S' | 'w' | 'W' => {
                self.skip(2);
                let class = self.perl(next);
                self.part(&class_text(&class), class.len());
                Ok(())
            }
            _ => {
                let letter = self.escaped()?;
                self.literal(letter)
            }
        }
    }

    /// The character that an escape stands for.
    fn escaped(&mut self) -> Understood<char> {
        self.skip(1);
        let Some(next) = self.left.chars().next() else { return invalid("it ends with a backslash") };
        self.skip(next.len_utf8());
        Ok(match next {
            'p' | 'P' => return unsupported("it names a class of Unicode"),
            'a' => '\u{7}',
            'f' => '\u{c}',
            'n' => '\n',
            'r' => '\r',
            't' => '\t',
            'v' => '\u{b}',
            'x' => return self.hexadecimal(),
            '0'..='7' => return self.octal(next),
            other if other.is_ascii() && !other.is_ascii_alphanumeric() => other,
            _ => return invalid("it has an escape that is not known"),
        })
    }

    fn hexadecimal(&mut self) -> Understood<char> {
        let bad = || Refused::Invalid("it has an escape that is not known".to_owned());
        let digits = match self.left.strip_prefix('{') {
            Some(inner) => {
                let (digits, rest) = inner.split_once('}').ok_or_else(bad)?;
                self.left = rest;
                digits
            }
            None => {
                let digits = self.left.get(..2).ok_or_else(bad)?;
                self.skip(2);
                digits
            }
        };
        if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return Err(bad());
        }
        let number = u32::from_str_radix(digits, 16).map_err(|_| bad())?;
        match char::from_u32(number) {
            Some(letter) => Ok(letter),
            None if number <= END => unsupported("it names half a character"),
            None => Err(bad()),
        }
    }

    /// One digit that is not zero would be a reference to a group.
    fn octal(&mut self, first: char) -> Understood<char> {
        let mut digits = first.to_string();
        while let Some(digit @ '0'..='7') = self.left.chars().next().filter(|_| digits.len() < 3) {
            digits.push(digit);
            self.skip(1);
        }
        match u32::from_str_radix(&digits, 8).ok().and_then(char::from_u32) {
            Some(letter) if digits.len() > 1 || first == '0' => Ok(letter),
            _ => invalid("it refers to a group"),
        }
    }

    /// `\d` and its like, as ASCII has them.
    fn perl(&self, letter: char) -> Class {
        let mut class = match letter.to_ascii_lowercase() {
            'd' => vec![(48, 57)],
            's' => vec![(9, 10), (12, 13), (32, 32)],
            _ => vec![(48, 57), (65, 90), (95, 95), (97, 122)],
        };
        if letter.eq_ignore_ascii_case(&'w') && self.flags.any_case {
            class.extend(SIMILAR.iter().map(|(_, other)| (*other, *other)));
        }
        if letter.is_ascii_uppercase() { without(class) } else { class }
    }

    fn class(&mut self) -> Understood<Class> {
        self.skip(1);
        let negative = self.taken("^");
        let mut class = Class::new();
        let mut first = true;
        loop {
            if !first && self.taken("]") {
                return Ok(if negative { without(class) } else { merged(class) });
            }
            first = false;
            if let Some((name, rest)) = self.left.strip_prefix("[:").and_then(|name| name.split_once(":]")) {
                self.left = rest;
                class.extend(self.posix(name)?);
                continue;
            }
            let second = self.left.strip_prefix('\\').and_then(|rest| rest.chars().next());
            if let Some(letter @ ('d' | 'D' | 's' | 'S' | 'w' | 'W')) = second {
                self.skip(2);
                class.extend(self.perl(letter));
                continue;
            }
            let low = self.member()?;
            let mut high = low;
            if self.left.starts_with('-') && self.left.len() > 1 && !self.left.starts_with("-]") {
                self.skip(1);
                high = self.member()?;
            }
            if high < low {
                return invalid("a range of a class ends before it begins");
            }
            self.add(&mut class, u32::from(low), u32::from(high))?;
        }
    }

    fn member(&mut self) -> Understood<char> {
        match self.left.chars().next() {
            None => invalid("a class has no end"),
            Some('\\') => self.escaped(),
            Some(other) => {
                self.skip(other.len_utf8());
                Ok(other)
            }
        }
    }

    /// `[:alpha:]` and its like.
    fn posix(&self, name: &str) -> Understood<Class> {
        let (name, negative) = name.strip_prefix('^').map_or((name, false), |name| (name, true));
        let ranges: &[(u32, u32)] = match name {
            "alnum" => &[(48, 57), (65, 90), (97, 122)],
            "alpha" => &[(65, 90), (97, 122)],
            "ascii" => &[(0, 127)],
            "blank" => &[(9, 9), (32, 32)],
            "cntrl" => &[(0, 31), (127, 127)],
            "digit" => &[(48, 57)],
            "graph" => &[(33, 126)],
            "lower" => &[(97, 122)],
            "print" => &[(32, 126)],
            "punct" => &[(33, 47), (58, 64), (91, 96), (123, 126)],
            "space" => &[(9, 13), (32, 32)],
            "upper" => &[(65, 90)],
            "word" => &[(48, 57), (65, 90), (95, 95), (97, 122)],
            "xdigit" => &[(48, 57), (65, 70), (97, 102)],
            _ => return invalid("it names a class that is not known"),
        };
        let mut class = Class::new();
        ranges.iter().try_for_each(|(low, high)| self.add(&mut class, *low, *high))?;
        Ok(if negative { without(class) } else { class })
    }

    /// Adds characters to a class, in both cases if the case is none.
    fn add(&self, class: &mut Class, low: u32, high: u32) -> Understood<()> {
        class.push((low, high));
        if !self.flags.any_case {
            return Ok(());
        }
        if high > 127 {
            return unsupported("it has letters in any case that ASCII does not have");
        }
        // Letters stand 32 apart.
        let overlap = |from: u32, to: u32| Some((low.max(from), high.min(to))).filter(|(low, high)| low <= high);
        class.extend(overlap(65, 90).map(|(low, high)| (low + 32, high + 32)));
        class.extend(overlap(97, 122).map(|(low, high)| (low - 32, high - 32)));
        for (letter, other) in SIMILAR {
            if class.iter().any(|(low, high)| (*low..=*high).contains(letter)) {
                class.push((*other, *other));
            }
        }
        let all = merged(std::mem::take(class));
        *class = all;
        Ok(())
    }
}

/// Letters of ASCII that have a third form: the sign of kelvin, and the long s.
const SIMILAR: &[(u32, u32)] = &[(107, 0x212a), (115, 0x17f)];

/// `{2}`, `{2,}` and `{2,5}`: the length of it, and the numbers. Everything else stands for itself.
fn counts(text: &str) -> Option<(usize, u64, Option<u64>)> {
    let inner = text.strip_prefix('{')?;
    let end = inner.find(|c: char| !c.is_ascii_digit() && c != ',')?;
    let number = |digits: &str| {
        let plain = !digits.is_empty() && (digits.len() == 1 || !digits.starts_with('0'));
        // What is longer than this is more than can be repeated.
        plain.then(|| digits.parse().unwrap_or(u64::MAX))
    };
    if !inner[end..].starts_with('}') {
        return None;
    }
    let counts = match inner[..end].split_once(',') {
        None => (number(&inner[..end])?, Some(number(&inner[..end])?)),
        Some((least, "")) => (number(least)?, None),
        Some((least, most)) => (number(least)?, Some(number(most)?)),
    };
    Some((end + 2, counts.0, counts.1))
}

/// Sorted, without overlaps.
fn merged(mut class: Class) -> Class {
    class.sort_unstable();
    let mut out = Class::with_capacity(class.len());
    for (low, high) in class {
        match out.last_mut() {
            Some((_, end)) if low <= end.saturating_add(1) => *end = high.max(*end),
            _ => out.push((low, high)),
        }
    }
    out
}

/// All other characters.
fn without(class: Class) -> Class {
    let mut out = Class::new();
    let mut next = 0;
    for (low, high) in merged(class) {
        if next < low {
            out.push((next, low - 1));
        }
        next = high + 1;
    }
    if next <= END {
        out.push((next, END));
    }
    out
}

fn class_text(class: &[(u32, u32)]) -> String {
    // No text holds halves of characters.
    let whole = class.iter().filter_map(|(low, high)| {
        let low = if (0xd800..=0xdfff).contains(low) { 0xe000 } else { *low };
        let high = if (0xd800..=0xdfff).contains(high) { 0xd7ff } else { *high };
        (low <= high).then(|| format!("\\x{{{low:x}}}-\\x{{{high:x}}}"))
    });
    let ranges: String = whole.collect();
    if ranges.is_empty() { format!("[^\\x{{0}}-\\x{{{END:x}}}]") } else { format!("[{ranges}]") }
}
