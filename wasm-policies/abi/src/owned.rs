//! The same words, holding all of their text themselves: for whoever keeps them longer than what they were read from.

use serde_json::Value;

use crate::text::{Map, Text};

/// Something that may borrow text.
pub(crate) trait IntoOwned {
    /// The same, borrowing nothing.
    type Owned;

    /// Copies what is borrowed.
    fn into_owned(self) -> Self::Owned;
}

impl IntoOwned for Text<'_> {
    type Owned = Text<'static>;

    fn into_owned(self) -> Text<'static> {
        // The inherent method of the same name.
        Text::into_owned(self)
    }
}

impl<T: IntoOwned> IntoOwned for Option<T> {
    type Owned = Option<T::Owned>;

    fn into_owned(self) -> Self::Owned {
        self.map(T::into_owned)
    }
}

impl<T: IntoOwned> IntoOwned for Vec<T> {
    type Owned = Vec<T::Owned>;

    fn into_owned(self) -> Self::Owned {
        self.into_iter().map(T::into_owned).collect()
    }
}

impl<V: IntoOwned> IntoOwned for Map<'_, V> {
    type Owned = Map<'static, V::Owned>;

    fn into_owned(self) -> Self::Owned {
        self.into_entries().map(|(key, value)| (Text::into_owned(key), value.into_owned())).collect()
    }
}

/// [`IntoOwned`] for types that borrow nothing.
macro_rules! owned_already {
    ($($type:ty),*) => {
        $(impl IntoOwned for $type {
            type Owned = Self;

            fn into_owned(self) -> Self {
                self
            }
        })*
    };
}

owned_already!(bool, i64, u32, Value);

/// [`IntoOwned`] for structs: a member that is forgotten does not compile.
macro_rules! into_owned {
    ($($name:ident { $($member:ident),* $(,)? })*) => {
        $(impl IntoOwned for $name<'_> {
            type Owned = $name<'static>;

            fn into_owned(self) -> Self::Owned {
                let Self { $($member),* } = self;
                $name { $($member: IntoOwned::into_owned($member)),* }
            }
        }

        impl $name<'_> {
            /// The same, borrowing nothing.
            pub fn into_owned(self) -> $name<'static> {
                IntoOwned::into_owned(self)
            }
        })*
    };
}

pub(crate) use {into_owned, owned_already};
