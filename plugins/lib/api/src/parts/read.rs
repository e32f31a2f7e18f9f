//! How parts are declared and read: by [`member`](crate::member), with nothing for what is `null`, but for what is `required`.

use serde::de::Error as _;
use serde_json::{Error, Value};

/// Refuses what is of another version or kind. Objects of a list say neither.
pub(super) fn expect(said: &Value, expected: &str) -> Result<(), Error> {
    // Versions of the core have no group.
    let expected = expected.trim_start_matches('/');
    if said == expected { Ok(()) } else { Err(Error::custom(format_args!("it must be {expected}"))) }
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

            impl crate::member::Member for $part {
                fn read(value: Option<serde_json::Value>, reader: &mut crate::member::Reader) -> Self {
                    let mut members = reader.members(value, stringify!($part));
                    Self { $($member: read_member!(members, $name),)* }
                }
            }
        )*
    };
}

/// Reads a member of a part.
macro_rules! read_member {
    ($members:ident, $name:literal) => {
        $members.or_default::<Option<_>>($name).unwrap_or_default()
    };
    ($members:ident, $name:literal, required) => {
        $members.member($name)
    };
}

/// Declares a part of an object: what it holds besides its metadata, and how it is addressed. What is `required` is part of every
/// object that is stored: what lacks it was damaged on the way, and nothing can be said of it.
macro_rules! part_object {
    (
        $(#[$meta:meta])*
        pub struct $root:ident { $($(#[$doc:meta])* $($required:ident)? $name:literal => $member:ident: $type:ty),* $(,)? }
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

        impl crate::member::Member for $root {
            fn read(value: Option<serde_json::Value>, reader: &mut crate::member::Reader) -> Self {
                let mut members = reader.members(value, stringify!($root));
                members.read_with("apiVersion", |said| super::read::expect(&said, concat!($group, "/", $version)));
                members.read_with("kind", |said| super::read::expect(&said, stringify!($root)));
                Self {
                    metadata: read_member!(members, "metadata"),
                    $($member: read_member!(members, $name $(, $required)?),)*
                }
            }
        }

        impl<'de> serde::Deserialize<'de> for $root {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                crate::member::deserialize(deserializer)
            }
        }
    };
}
