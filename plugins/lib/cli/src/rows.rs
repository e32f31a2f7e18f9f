//! What each of many is at, while they are worked on: rows from events, and lines that fit a terminal.

use std::time::Instant;

use console::{measure_text_width, truncate_str};
use ocm_core::order;
use ocm_core::{Event, duration};

use crate::clean;

const HEADINGS: [&str; 4] = ["NAME", "OUTCOME", "SINCE", "STEP"];

/// What stands between two columns.
const GAP: &str = "   ";

/// What stands in the place of what was cut off.
const CUT: &str = "…";

/// The rows of many that are worked on at once, each at its place.
#[derive(Debug)]
pub(crate) struct Rows(Vec<Row>);

#[derive(Debug)]
struct Row {
    name: String,
    state: State,
}

#[derive(Debug)]
enum State {
    /// Nothing was told of it yet.
    Waiting,
    /// It is being worked on.
    AtWork { doing: String, because: Option<String>, since: Instant },
    /// It has ended, where it has failed for a reason.
    Ended { outcome: String, because: Option<String>, since: Instant },
}

impl Rows {
    /// A row for each of the names, in the order of their places.
    pub(crate) fn new(names: impl IntoIterator<Item = String>) -> Self {
        Self(names.into_iter().map(|name| Row { name: clean(&name), state: State::Waiting }).collect())
    }

    /// Takes an event of the one at this place: what it does or waits for is its step, since it began with it.
    pub(crate) fn told(&mut self, place: usize, event: &Event, now: Instant) {
        let Event::Now { doing, because } = event else { return };
        let Some(row) = self.0.get_mut(place) else { return };
        let since = match &row.state {
            State::AtWork { doing: before, since, .. } if before == doing => *since,
            _ => now,
        };
        row.state = State::AtWork { doing: doing.clone(), because: because.clone(), since };
    }

    /// Takes the last event of the one at this place, with the word for its outcome.
    pub(crate) fn ended(&mut self, place: usize, outcome: &str, event: &Event, now: Instant) {
        let because = match event {
            Event::Warning(why) => Some(why.clone()),
            Event::Now { .. } | Event::Done(_) | Event::Note(_) => None,
        };
        if let Some(row) = self.0.get_mut(place) {
            row.state = State::Ended { outcome: outcome.to_owned(), because, since: now };
        }
    }

    /// How many have ended, as a sentence.
    pub(crate) fn so_far(&self) -> String {
        format!("{} of {} have ended", Counts::of(&self.0).ended, self.0.len())
    }

    /// The table as lines, none wider than `width` and no more than `height`. Where there is no room for all rows, those that
    /// are worked on go before those that have ended, and these before those that wait; a line says how many are left out.
    pub(crate) fn lines(&self, now: Instant, width: usize, height: usize) -> Vec<String> {
        // The headings need a line, and what is left out another one.
        let room = if self.0.len() < height { self.0.len() } else { height.saturating_sub(2) };
        if room == 0 {
            return Vec::new();
        }
        let (shown, left_out) = self.most_telling(room);
        let cells: Vec<[String; 4]> = shown.iter().map(|row| row.cells(now)).collect();
        let widest = |column: usize| {
            let of_cells = cells.iter().map(|cells| measure_text_width(&cells[column])).max().unwrap_or_default();
            of_cells.max(HEADINGS[column].len())
        };
        // A long name leaves room for what becomes of it.
        let widths = [widest(0).min((width / 3).max(HEADINGS[0].len())), widest(1), widest(2)];
        let headings = HEADINGS.map(str::to_owned);
        let mut lines: Vec<String> =
            std::iter::once(&headings).chain(&cells).map(|cells| line(cells, widths, width)).collect();
        if !left_out.is_empty() {
            let told = format!("and {} more: {}", left_out.len(), Counts::of(left_out.iter().copied()).told());
            lines.push(truncate_str(&told, width, CUT).into_owned());
        }
        lines
    }

    /// So many rows in their order, and the others.
    fn most_telling(&self, room: usize) -> (Vec<&Row>, Vec<&Row>) {
        let mut order: Vec<usize> = (0..self.0.len()).collect();
        order::sort_by_key(&mut order, |index| match self.0[*index].state {
            State::AtWork { .. } => 0,
            State::Ended { .. } => 1,
            State::Waiting => 2,
        });
        let mut others = order.split_off(room.min(order.len()));
        order::sort(&mut order);
        order::sort(&mut others);
        let rows = |indices: Vec<usize>| indices.into_iter().map(|index| &self.0[index]).collect();
        (rows(order), rows(others))
    }
}

/// The cells as a line: the first three columns have their width, the last has what is left.
fn line(cells: &[String; 4], widths: [usize; 3], width: usize) -> String {
    let mut line = String::new();
    for (cell, width) in cells.iter().zip(widths) {
        let cell = truncate_str(cell, width, CUT);
        line += &cell;
        line += &" ".repeat(width.saturating_sub(measure_text_width(&cell)));
        line += GAP;
    }
    line += &cells[3];
    truncate_str(line.trim_end(), width, CUT).into_owned()
}

impl Row {
    fn cells(&self, now: Instant) -> [String; 4] {
        let age = |since: &Instant| duration::human(now.saturating_duration_since(*since));
        let (outcome, since, step) = match &self.state {
            State::Waiting => (String::new(), String::new(), String::new()),
            State::AtWork { doing, because: None, since } => (String::new(), age(since), clean(doing)),
            State::AtWork { doing, because: Some(because), since } => {
                (String::new(), age(since), clean(&format!("{doing}: {because}")))
            }
            State::Ended { outcome, because, since } => {
                (outcome.clone(), age(since), clean(because.as_deref().unwrap_or_default()))
            }
        };
        [self.name.clone(), outcome, since, step]
    }
}

/// How many rows are in which state.
#[derive(Default)]
struct Counts {
    at_work: usize,
    ended: usize,
    waiting: usize,
}

impl Counts {
    fn of<'a>(rows: impl IntoIterator<Item = &'a Row>) -> Self {
        rows.into_iter().fold(Self::default(), |mut counts, row| {
            match row.state {
                State::AtWork { .. } => counts.at_work += 1,
                State::Ended { .. } => counts.ended += 1,
                State::Waiting => counts.waiting += 1,
            }
            counts
        })
    }

    fn told(&self) -> String {
        let each = [(self.at_work, "at work"), (self.ended, "ended"), (self.waiting, "waiting")];
        let each = each.iter().filter(|(count, _)| *count > 0).map(|(count, word)| format!("{count} {word}"));
        each.collect::<Vec<_>>().join(", ")
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn rows<const N: usize>(names: [&str; N]) -> Rows {
        Rows::new(names.map(str::to_owned))
    }

    fn many(count: usize) -> Rows {
        Rows::new((0..count).map(|index| format!("c{index}")))
    }

    #[test]
    fn a_step_lasts_since_it_began_whatever_holds_it_up_and_an_end_stays() {
        let mut rows = rows(["hub", "c1", "hub", "c3"]);
        let begun = Instant::now();
        let at = |seconds: u64| begun + Duration::from_secs(seconds);
        rows.told(0, &Event::now("installing"), at(0));
        rows.told(0, &Event::blocked("waiting for pods", "none"), at(2));
        rows.told(0, &Event::blocked("waiting for pods", "0 of 1 ready"), at(5));
        rows.told(0, &Event::note("a note is no step"), at(6));
        rows.told(1, &Event::now("joining"), at(1));
        rows.ended(1, "Changed", &Event::note("it is available"), at(8));
        rows.ended(2, "Failed", &Event::warning("no route\n: down"), at(9));
        rows.told(9, &Event::now("nobody is there"), at(9));
        let expected = [
            "NAME   OUTCOME   SINCE   STEP",
            "hub              8s      waiting for pods: 0 of 1 ready",
            "c1     Changed   2s",
            "hub    Failed    1s      no route : down",
            "c3",
        ];
        assert_eq!(rows.lines(at(10), 80, 24), expected);
        assert_eq!(rows.so_far(), "2 of 4 have ended");
    }

    #[test]
    fn no_line_is_wider_than_the_terminal() {
        let mut rows = rows(["a-cluster-whose-name-is-rather-long", "東京", "c3"]);
        let now = Instant::now();
        rows.told(0, &Event::blocked("waiting for Deployment x", "東京 is far away, and so is all the rest"), now);
        rows.told(1, &Event::now("\u{1b}[31mred"), now);
        rows.ended(2, "WouldChange", &Event::now("it was looked at"), now);
        for width in 1..120 {
            for line in rows.lines(now, width, 24) {
                assert!(measure_text_width(&line) <= width && !line.contains('\u{1b}'), "{width}: {line:?}");
            }
        }
        // Names have a third of the line, and columns stand under their headings whatever is in them.
        let expected = [
            "NAME              OUTCOME       SINCE   STEP",
            "a-cluster-whos…                 0s      waitin…",
            "東京                            0s      \\u{1b}…",
            "c3                WouldChange   0s",
        ];
        assert_eq!(rows.lines(now, 47, 24), expected);
    }

    #[test]
    fn there_are_no_more_lines_than_the_terminal_has() {
        let mut rows = many(10);
        let now = Instant::now();
        for place in [1, 3] {
            rows.ended(place, "Unchanged", &Event::note("n"), now);
        }
        for place in [2, 8] {
            rows.told(place, &Event::now("joining"), now);
        }
        for height in 0..20 {
            let lines = rows.lines(now, 80, height);
            assert!(lines.len() <= height, "{height}: {lines:?}");
        }
        assert_eq!(rows.lines(now, 80, 11).len(), 11, "all rows under their headings");
        let first = |height: usize| -> Vec<String> {
            let lines = rows.lines(now, 80, height);
            lines.iter().filter_map(|line| line.split(' ').next()).map(str::to_owned).collect()
        };
        assert_eq!(first(10).len(), 10);
        assert_eq!(first(5), ["NAME", "c1", "c2", "c8", "and"], "what is worked on, and the first that has ended");
        assert_eq!(rows.lines(now, 80, 5)[4], "and 7 more: 1 ended, 6 waiting");
        assert_eq!(rows.lines(now, 80, 3)[2], "and 9 more: 1 at work, 2 ended, 6 waiting");
        assert_eq!(rows.lines(now, 80, 2), [""; 0], "headings alone say nothing");
    }
}
