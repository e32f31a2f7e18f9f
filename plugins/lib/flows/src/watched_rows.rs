//! Rows that are made of an object and of what objects of another kind say of it, told as either of them changes.

use std::collections::BTreeMap;
use std::future::ready;

use futures::{Stream, StreamExt};
use kube::runtime::watcher;
use ocm_core::Failure;
use ocm_kube::Cluster;
use serde::de::DeserializeOwned;

use crate::cluster_sets::patient;
use crate::get::{is_named, watched};
use crate::watch::{Changed, REFUSALS, changes};

/// How many changes that come together are told from one reading.
pub(crate) const TOGETHER: usize = 256;

/// A row of a list.
pub(crate) trait Row: Clone + PartialEq {
    /// The object that it is of.
    type Object: Watched;
    /// What the hub holds besides.
    type Facts;

    fn of(object: Self::Object, facts: &Self::Facts) -> Self;

    /// Its object, from what the hub holds or as it was told last; none if the hub has none any more.
    fn latest(&self, facts: &Self::Facts) -> Option<Self::Object>;

    /// The name of its object.
    fn name(&self) -> &str;
}

/// Kinds of one scope that can be watched.
pub(crate) trait Watched:
    kube::Resource<DynamicType = ()> + Clone + DeserializeOwned + std::fmt::Debug + Send + 'static
{
}

impl<K> Watched for K where
    K: kube::Resource<DynamicType = ()> + Clone + DeserializeOwned + std::fmt::Debug + Send + 'static
{
}

/// What was heard of: an object of a row, or the name of one that an object of the other kind is about.
#[derive(Clone)]
enum Heard<K> {
    Object(Box<Changed<K>>),
    About(String),
}

impl<K> Heard<K> {
    /// Whether a row may have changed.
    fn is_of_object(&self) -> bool {
        match self {
            Self::About(_) => true,
            Self::Object(change) => matches!(**change, Changed::Now(_) | Changed::Gone(_)),
        }
    }

    fn is_loss(&self) -> bool {
        matches!(self, Self::Object(change) if matches!(**change, Changed::Lost(_)))
    }
}

/// Follows the objects of rows, and those `others` of another kind, each of which is about the object that `about` names. `read`
/// reads what the hub holds, once for changes that come together. Rows of other names than these are left out; none means all.
pub(crate) fn watch_rows<R: Row, B: Watched>(
    hub: &Cluster,
    others: watcher::Config,
    names: Vec<String>,
    selector: Option<&str>,
    about: fn(&B) -> String,
    read: impl AsyncFn(&Cluster) -> Result<R::Facts, Failure> + Clone,
) -> impl Stream<Item = Result<Changed<R>, Failure>> {
    let objects = changes(hub, watched(&names, selector), |object: R::Object| object, Clone::clone);
    let objects = objects.map(|change| change.map(|change| Heard::Object(Box::new(change))));
    let others = changes(hub, others, |other: B| other, Clone::clone);
    let others = others.filter_map(move |change| {
        ready(match change {
            Ok(Changed::Now(other) | Changed::Gone(other)) => Some(Ok(Heard::About(about(&other)))),
            // That the hub is lost, and is there again, the other watch tells.
            Ok(Changed::Listed | Changed::Lost(_) | Changed::Back) => None,
            Err(failure) => Some(Err(failure)),
        })
    });
    let hub = hub.clone();
    let mut told = Told::<R>(BTreeMap::new());
    let mut was_lost = false;
    futures::stream::select(objects, others)
        .ready_chunks(TOGETHER)
        .then(move |heard| {
            let (hub, read) = (hub.clone(), read.clone());
            was_lost |= heard.iter().flatten().any(Heard::is_loss);
            // Nothing is read while the hub is lost: that it is would be told only when it is there again.
            let needs_facts = heard.iter().flatten().any(Heard::is_of_object);
            let refusals = if needs_facts && std::mem::take(&mut was_lost) { REFUSALS } else { 0 };
            async move {
                let facts = match needs_facts {
                    true => patient(refusals, async || read(&hub).await).await.map(Some),
                    false => Ok(None),
                };
                (heard, facts)
            }
        })
        .flat_map(move |(heard, facts)| {
            futures::stream::iter(match facts {
                Ok(facts) => heard.into_iter().filter_map(|heard| told.take(heard, facts.as_ref())).collect(),
                Err(failure) => vec![Err(failure)],
            })
        })
        .filter(move |change| ready(change.as_ref().map_or(true, |change| is_named(change, &names, R::name))))
}

/// What was told last of each object: what is still so is no news.
struct Told<R>(BTreeMap<String, R>);

impl<R: Row> Told<R> {
    fn take(
        &mut self,
        heard: Result<Heard<R::Object>, Failure>,
        facts: Option<&R::Facts>,
    ) -> Option<Result<Changed<R>, Failure>> {
        let row = match heard {
            Err(failure) => return Some(Err(failure)),
            // What is said of objects is told of those that the watch has shown.
            Ok(Heard::About(name)) => R::of(self.0.get(&name)?.latest(facts?)?, facts?),
            Ok(Heard::Object(change)) => match *change {
                Changed::Now(object) => R::of(object, facts?),
                Changed::Gone(object) => {
                    let row = R::of(object, facts?);
                    return Some(Ok(Changed::Gone(self.0.remove(row.name()).unwrap_or(row))));
                }
                Changed::Listed => return Some(Ok(Changed::Listed)),
                Changed::Lost(failure) => return Some(Ok(Changed::Lost(failure))),
                Changed::Back => return Some(Ok(Changed::Back)),
            },
        };
        let before = self.0.insert(row.name().to_owned(), row.clone());
        (before.as_ref() != Some(&row)).then_some(Ok(Changed::Now(row)))
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::ConfigMap;
    use serde_json::json;

    use super::*;

    #[derive(Clone, Debug, PartialEq)]
    struct Counted {
        object: ConfigMap,
        count: usize,
    }

    impl Row for Counted {
        type Object = ConfigMap;
        type Facts = usize;

        fn of(object: ConfigMap, count: &usize) -> Self {
            Self { object, count: *count }
        }

        fn latest(&self, _: &usize) -> Option<ConfigMap> {
            Some(self.object.clone())
        }

        fn name(&self) -> &str {
            self.object.metadata.name.as_deref().unwrap_or_default()
        }
    }

    #[test]
    fn a_row_is_told_anew_when_more_is_said_of_its_object_and_not_when_nothing_differs() {
        let mut told = Told::<Counted>(BTreeMap::new());
        let object: ConfigMap = serde_json::from_value(json!({"metadata": {"name": "hello"}})).unwrap();
        let about = || Ok(Heard::About("hello".to_owned()));
        let of = |change| Ok(Heard::Object(Box::new(change)));
        let count = |told: Option<Result<Changed<Counted>, Failure>>| match told {
            Some(Ok(Changed::Now(row) | Changed::Gone(row))) => Some(row.count),
            _ => None,
        };
        assert!(told.take(about(), Some(&1)).is_none(), "the watch has not shown it");
        assert_eq!(count(told.take(of(Changed::Now(object.clone())), Some(&1))), Some(1));
        assert!(told.take(about(), Some(&1)).is_none());
        assert_eq!(count(told.take(about(), Some(&2))), Some(2));
        assert_eq!(count(told.take(of(Changed::Gone(object)), Some(&0))), Some(2), "as it was told last");
        assert!(told.take(about(), Some(&3)).is_none());
    }
}
