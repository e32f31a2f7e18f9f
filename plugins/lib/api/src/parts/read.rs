//! How a part is read: its object as a whole, then member by member, all kinds on the same way.

use std::collections::BTreeMap;

use k8s_openapi::ByteString;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, MicroTime, ObjectMeta, Time};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use serde::Deserialize;
use serde::de::{Deserializer, Error as _};
use serde_json::{Error, Map, Value};

/// What can be read of a JSON value.
pub(super) trait Read: Sized {
    /// Reads it.
    fn read(value: Value) -> Result<Self, Error>;
}

macro_rules! read_by_serde {
    ($($type:ty),*) => {
        $(impl Read for $type {
            fn read(value: Value) -> Result<Self, Error> {
                Self::deserialize(value)
            }
        })*
    };
}

read_by_serde! { bool, i32, i64, String, ByteString, IntOrString, LabelSelector, MicroTime, ObjectMeta, Time }

impl<T: Read> Read for Option<T> {
    fn read(value: Value) -> Result<Self, Error> {
        T::read(value).map(Some)
    }
}

impl<T: Read> Read for Vec<T> {
    fn read(value: Value) -> Result<Self, Error> {
        match value {
            Value::Array(items) => items.into_iter().map(T::read).collect(),
            _ => Err(Error::custom("it must be an array")),
        }
    }
}

impl<T: Read> Read for BTreeMap<String, T> {
    fn read(value: Value) -> Result<Self, Error> {
        let members = Members::of(value)?.0.into_iter();
        members.map(|(name, value)| T::read(value).map(|value| (name, value))).collect()
    }
}

/// The members of a JSON object that were not taken yet.
pub(super) struct Members(Map<String, Value>);

impl Members {
    pub(super) fn of(value: Value) -> Result<Self, Error> {
        match value {
            Value::Object(members) => Ok(Self(members)),
            _ => Err(Error::custom("it must be an object")),
        }
    }

    /// The members of an object of this kind. Objects of a list do not say theirs.
    pub(super) fn of_kind<'de, D: Deserializer<'de>>(
        deserializer: D,
        api_version: &str,
        kind: &str,
    ) -> Result<Self, D::Error> {
        let members = Map::deserialize(deserializer).map(Self)?;
        for (member, expected) in [("apiVersion", api_version), ("kind", kind)] {
            if members.0.get(member).is_some_and(|found| found != expected) {
                return Err(D::Error::custom(format_args!("{member} must be {expected}")));
            }
        }
        Ok(members)
    }

    /// A member; nothing where it is not there, or `null`.
    pub(super) fn take<T: Read + Default>(&mut self, name: &str) -> Result<T, Error> {
        match self.0.remove(name) {
            None | Some(Value::Null) => Ok(T::default()),
            Some(value) => T::read(value).map_err(|error| Error::custom(format_args!("{name}: {error}"))),
        }
    }
}

/// Declares parts of what objects hold: each member with the name that it has there.
macro_rules! part {
    ($(
        $(#[$meta:meta])*
        pub struct $part:ident { $($(#[$doc:meta])* $name:literal => $member:ident: $type:ty),* $(,)? }
    )*) => {
        $(
            $(#[$meta])*
            #[derive(Clone, Debug, Default, PartialEq)]
            pub struct $part {
                $($(#[$doc])* pub $member: $type,)*
            }

            impl super::read::Read for $part {
                fn read(value: serde_json::Value) -> Result<Self, serde_json::Error> {
                    let mut members = super::read::Members::of(value)?;
                    Ok(Self { $($member: members.take($name)?,)* })
                }
            }
        )*
    };
}

/// Declares a part of an object: what it holds besides its metadata, and how it is addressed.
macro_rules! part_object {
    (
        $(#[$meta:meta])*
        pub struct $root:ident { $($(#[$doc:meta])* $name:literal => $member:ident: $type:ty),* $(,)? }
        group $group:literal, version $version:literal, plural $plural:literal, scope $scope:ident
    ) => {
        $(#[$meta])*
        #[derive(Clone, Debug, Default, PartialEq)]
        pub struct $root {
            /// Name, labels, annotations and the server's book-keeping.
            pub metadata: k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta,
            $($(#[$doc])* pub $member: $type,)*
        }

        api_resource! { $root, $group, $version, $plural, $scope }

        impl<'de> serde::Deserialize<'de> for $root {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let api_version = <Self as kube_core::Resource>::api_version(&());
                let members = super::read::Members::of_kind(deserializer, &api_version, stringify!($root))?;
                let read = |mut members: super::read::Members| {
                    let metadata = members.take("metadata")?;
                    Ok(Self { metadata, $($member: members.take($name)?,)* })
                };
                read(members).map_err(|error: serde_json::Error| serde::de::Error::custom(error))
            }
        }
    };
}
