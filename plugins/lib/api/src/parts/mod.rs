//! Parts of objects that Kubernetes itself defines: of each kind those members that somebody looks at. Reading whole ones would
//! bring the code for everything that they can hold into every binary, such as all kinds of volumes of a pod.
//!
//! What is not there, or is `null`, reads as nothing, as it does with the whole types. What is there and looked at must be what
//! the API says that it is; the rest of the object is not looked at. So whatever was read as a part is never written back: the
//! rest would be lost. Write it with a patch of what changes.
//!
//! The tests compare each part with the whole type.

#[macro_use]
mod read;

mod admission;
mod coordination;
mod namespace;
mod network;
mod rbac;
mod review;
mod workload;

pub use admission::*;
pub use coordination::*;
pub use namespace::*;
pub use network::*;
pub use rbac::*;
pub use review::*;
pub use workload::*;

#[cfg(test)]
mod tests {
    use kube_core::Resource;
    use serde::de::DeserializeOwned;
    use serde_json::{Value, json};

    use super::*;

    /// An object as a part and as a whole, read of a value and of a text.
    pub(super) fn both<P, W>(object: Value) -> (P, W)
    where
        P: Resource<DynamicType = ()> + DeserializeOwned + PartialEq + std::fmt::Debug,
        W: Resource<DynamicType = ()> + DeserializeOwned,
    {
        assert_eq!(P::url_path(&(), Some("n")), W::url_path(&(), Some("n")));
        assert_eq!((P::api_version(&()), P::kind(&())), (W::api_version(&()), W::kind(&())));
        let of_text: P = serde_json::from_str(&object.to_string()).unwrap();
        let part: P = serde_json::from_value(object.clone()).unwrap();
        assert_eq!(part, of_text);
        // Objects of a list say neither.
        let mut item = object.clone();
        let members = item.as_object_mut().unwrap();
        members.retain(|name, _| name != "apiVersion" && name != "kind");
        assert_eq!(part, serde_json::from_value(item).unwrap());
        (part, serde_json::from_value(object).unwrap())
    }

    /// What neither a part nor a whole can be read of.
    pub(super) fn refused<P: DeserializeOwned, W: DeserializeOwned>(object: Value) {
        let text = object.to_string();
        assert!(serde_json::from_value::<W>(object.clone()).is_err(), "{text} needs none of this");
        assert!(serde_json::from_value::<P>(object).is_err(), "{text}");
        assert!(serde_json::from_str::<P>(&text).is_err(), "{text}");
    }

    /// No API server stores an object without its `spec`: one that lacks it says nothing.
    pub(super) fn damaged<P: DeserializeOwned>() {
        for object in [json!({"metadata": {"name": "n"}}), json!({"metadata": {"name": "n"}, "spec": null})] {
            assert!(serde_json::from_value::<P>(object.clone()).is_err(), "{object}");
        }
    }

    #[test]
    fn an_error_says_where() {
        let status = json!({"containerStatuses": [{"name": "c", "restartCount": "many"}]});
        let error = serde_json::from_value::<Pod>(json!({"metadata": {"name": "p"}, "spec": {}, "status": status}))
            .unwrap_err();
        let error = error.to_string();
        assert!(error.starts_with("status.containerStatuses[0].restartCount: invalid type: string"), "{error}");
    }
}
