//! Roots of the objects whose schema the hub owns.

/// Declares the root of an API object: metadata, spec (if the kind has one) and status, and how to address it.
///
/// `kube-derive` would make `spec` mandatory. The hub's schemas do not, and one `ManagedCluster` without a spec must
/// not make the whole list unreadable.
macro_rules! api_object {
    (
        $(#[$meta:meta])*
        $root:ident { spec: $spec:ty, status: $status:ty }
        group $group:literal, version $version:literal, plural $plural:literal, scope $scope:ident
    ) => {
        $(#[$meta])*
        #[derive(Clone, Debug, Default, PartialEq, crate::member::Member)]
        pub struct $root {
            /// Name, labels, annotations and the server's book-keeping.
            #[serde(default)]
            pub metadata: k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta,
            /// What is wanted.
            #[serde(default)]
            pub spec: $spec,
            /// What was last observed; absent until a controller has written it.
            #[serde(default)]
            pub status: Option<$status>,
        }

        impl $root {
            /// An object of this name, without status.
            pub fn new(name: &str, spec: $spec) -> Self {
                let metadata = k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta {
                    name: Some(name.to_owned()),
                    ..Default::default()
                };
                Self { metadata, spec, status: None }
            }
        }

        impl serde::Serialize for $root {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                use serde::ser::SerializeStruct;
                let mut object = serializer.serialize_struct(stringify!($root), 5)?;
                object.serialize_field("apiVersion", concat!($group, "/", $version))?;
                object.serialize_field("kind", stringify!($root))?;
                object.serialize_field("metadata", &self.metadata)?;
                object.serialize_field("spec", &self.spec)?;
                match &self.status {
                    Some(status) => object.serialize_field("status", status)?,
                    None => object.skip_field("status")?,
                }
                object.end()
            }
        }

        api_resource! { $root, $group, $version, $plural, $scope }
    };
    (
        $(#[$meta:meta])*
        $root:ident { status: $status:ty }
        group $group:literal, version $version:literal, plural $plural:literal, scope $scope:ident
    ) => {
        $(#[$meta])*
        #[derive(Clone, Debug, Default, PartialEq, crate::member::Member)]
        pub struct $root {
            /// Name, labels, annotations and the server's book-keeping.
            #[serde(default)]
            pub metadata: k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta,
            /// What was last observed; absent until a controller has written it.
            #[serde(default)]
            pub status: Option<$status>,
        }

        impl serde::Serialize for $root {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                use serde::ser::SerializeStruct;
                let mut object = serializer.serialize_struct(stringify!($root), 4)?;
                object.serialize_field("apiVersion", concat!($group, "/", $version))?;
                object.serialize_field("kind", stringify!($root))?;
                object.serialize_field("metadata", &self.metadata)?;
                match &self.status {
                    Some(status) => object.serialize_field("status", status)?,
                    None => object.skip_field("status")?,
                }
                object.end()
            }
        }

        api_resource! { $root, $group, $version, $plural, $scope }
    };
}

/// How an API object is addressed.
macro_rules! api_resource {
    ($root:ident, $group:literal, $version:literal, $plural:literal, $scope:ident) => {
        impl kube_core::Resource for $root {
            type DynamicType = ();
            type Scope = kube_core::$scope;

            fn kind(_: &()) -> std::borrow::Cow<'_, str> {
                stringify!($root).into()
            }

            fn group(_: &()) -> std::borrow::Cow<'_, str> {
                $group.into()
            }

            fn version(_: &()) -> std::borrow::Cow<'_, str> {
                $version.into()
            }

            fn plural(_: &()) -> std::borrow::Cow<'_, str> {
                $plural.into()
            }

            fn meta(&self) -> &k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta {
                &self.metadata
            }

            fn meta_mut(&mut self) -> &mut k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta {
                &mut self.metadata
            }
        }
    };
}
