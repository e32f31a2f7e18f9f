//! What became of objects that were sent to clusters one by one and waited for, or taken away from them: the same for every
//! command that does.

use ocm_core::leave::some;
use ocm_core::plan::{Applied, Mode};
use ocm_core::{Event, Exit, Failure, Narrator};
use serde_json::{Map, Value, json};

use crate::{PlanView, Ui, without_nulls};

/// One object that was sent.
pub struct Sent {
    /// What it is called in failures: `c1`, or `hello of c1`.
    pub told: String,
    /// Members of its document that say which it is.
    pub is: Map<String, Value>,
    /// What became of it.
    pub answer: Result<Applied, Failure>,
    /// What keeps it from being there, where it was waited for and has been seen.
    pub why: Option<Option<String>>,
}

/// What was waited for.
pub struct WaitedFor {
    /// Its table, for people.
    pub table: String,
    /// The member of each document that says whether it is there.
    pub word: &'static str,
    /// Why not everything is there, with what helps.
    pub late: Option<Failure>,
}

/// What sending objects to clusters came to.
pub struct SentAll {
    /// Members of the document besides the objects.
    pub members: Map<String, Value>,
    /// The member that holds the objects.
    pub list: &'static str,
    /// The objects.
    pub sent: Vec<Sent>,
    /// What was waited for; none if nobody waited.
    pub waited: Option<WaitedFor>,
    /// Where it is told what becomes of them, for those who have not waited.
    pub next: String,
}

impl SentAll {
    /// Shows it. `sentence` says that so many of so many could not be sent.
    ///
    /// # Errors
    /// What could not be sent, or why not everything is there.
    pub fn finish(self, view: &PlanView, ui: &Ui, sentence: impl Fn(usize, usize) -> String) -> Result<Exit, Failure> {
        let Self { mut members, list, sent, waited, next } = self;
        let word = waited.as_ref().map(|waited| waited.word);
        let documents: Vec<Value> = sent.iter().map(|one| one.document(word)).collect();
        members.insert(list.to_owned(), Value::Array(documents));
        let total = sent.len();
        let (mut applied, mut failed) = (Vec::new(), Vec::new());
        for Sent { told, answer, .. } in sent {
            match answer {
                Ok(one) => applied.push(one),
                Err(failure) => failed.push((told, failure)),
            }
        }
        let exit = match view.mode() {
            Mode::Diff => view.diff(&applied)?,
            _ => {
                view.document(members)?;
                Exit::Ok
            }
        };
        if let Some(waited) = &waited {
            view.table(&waited.table);
        }
        if let Some(failure) = Failure::of_several(total, failed, |failed| sentence(failed, total)) {
            return Err(failure);
        }
        match waited {
            Some(waited) => waited.late.map_or(Ok(exit), Err),
            None => {
                if view.has_changed() {
                    ui.tell(Event::note(next));
                }
                Ok(exit)
            }
        }
    }
}

impl Sent {
    /// As machines read it; `waited` is the member that says whether it is there, if it was waited for.
    fn document(&self, waited: Option<&'static str>) -> Value {
        let mut document = self.is.clone();
        document.insert("outcome".to_owned(), json!(self.answer.as_ref().ok().map(|applied| applied.outcome.word())));
        document.insert("error".to_owned(), json!(self.answer.as_ref().err().map(ToString::to_string)));
        if let Some(word) = waited {
            document.insert(word.to_owned(), json!(self.why.as_ref().is_some_and(Option::is_none)));
        }
        document.insert("why".to_owned(), json!(self.why.clone().flatten()));
        without_nulls(Value::Object(document))
    }
}

/// What became of the objects of one cluster that were to go.
pub struct Withdrawn {
    /// Name of the cluster.
    pub cluster: String,
    /// Names of those that were not there.
    pub missing: Vec<String>,
    /// What became of the others.
    pub answer: Result<(), Failure>,
}

/// What deleting objects of clusters came to. `what` is one of them, `work` or `add-on`; `word` is the member that says whether
/// it was done.
///
/// # Errors
/// What is not gone.
pub fn withdrawn(
    view: &PlanView,
    ui: &Ui,
    all: Vec<Withdrawn>,
    what: &str,
    word: &'static str,
) -> Result<Exit, Failure> {
    let of = |one: &Withdrawn| {
        without_nulls(json!({
            "cluster": one.cluster,
            word: view.mode().changes() && one.answer.is_ok(),
            "error": one.answer.as_ref().err().map(ToString::to_string),
        }))
    };
    let mut members = Map::new();
    members.insert("clusters".to_owned(), Value::Array(all.iter().map(of).collect()));
    view.document(members)?;
    for Withdrawn { cluster, missing, .. } in &all {
        for name in missing {
            ui.tell(Event::note(format!("cluster {cluster:?} has no {what} {name:?}: nothing was deleted")));
        }
    }
    let total = all.len();
    let failed = all.into_iter().filter_map(|one| Some((one.cluster, one.answer.err()?)));
    let sentence = |failed: usize| format!("{what}s of {failed} of {total} clusters are not gone");
    Failure::of_several(total, failed.collect(), sentence).map_or(Ok(Exit::Ok), Err)
}

/// Objects of clusters in a question: `a, b of c1, a of c2`.
pub fn of_clusters<'a>(all: impl IntoIterator<Item = (&'a str, Vec<String>)>) -> String {
    let of = |(cluster, names): (&str, Vec<String>)| format!("{} of {cluster}", some(&names));
    some(&all.into_iter().map(of).collect::<Vec<_>>())
}

#[cfg(test)]
mod tests {
    use ocm_api::{ManagedClusterAddOn, Manifest};
    use ocm_core::plan::Outcome;

    use super::*;

    fn sent(answer: Result<Applied, Failure>, why: Option<Option<String>>) -> Sent {
        let is = [("cluster".to_owned(), json!("c1"))].into_iter().collect();
        Sent { told: "c1".to_owned(), is, answer, why }
    }

    fn applied() -> Applied {
        let manifest = Manifest::of(&ManagedClusterAddOn::default());
        Applied { manifest, outcome: Outcome::Created, before: None, after: Value::Null }
    }

    #[test]
    fn whether_something_is_there_is_told_only_of_what_was_waited_for() {
        let there = sent(Ok(applied()), Some(None));
        assert_eq!(there.document(None), json!({"cluster": "c1", "outcome": "created"}));
        assert_eq!(there.document(Some("there")), json!({"cluster": "c1", "outcome": "created", "there": true}));
        let missing = sent(Ok(applied()), Some(Some("not yet".to_owned())));
        let document = json!({"cluster": "c1", "outcome": "created", "there": false, "why": "not yet"});
        assert_eq!(missing.document(Some("there")), document);
        // What was not sent, and so never seen.
        let failed = sent(Err(Failure::other("no")), None);
        assert_eq!(failed.document(Some("there")), json!({"cluster": "c1", "error": "no", "there": false}));
    }

    #[test]
    fn a_question_names_what_goes_of_each_cluster() {
        let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
        assert_eq!(of_clusters([("c1", names(&["a", "b"])), ("c2", names(&["a"]))]), "a, b of c1, a of c2");
    }
}
