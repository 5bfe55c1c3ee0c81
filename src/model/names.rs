//! The names of the variants of an enum, in one place for all directions.

/// Gives each variant of an enum its name, as requests, responses, manifests and commands have it.
macro_rules! names {
    ($type:ident: $($variant:ident $name:literal),+) => {
        #[allow(dead_code, unreachable_pub)] // not every enum is read from a name, or public
        impl $type {
            /// Every variant, in order.
            pub const ALL: [Self; [$($name),+].len()] = [$(Self::$variant),+];

            /// Returns the name.
            pub fn as_str(self) -> &'static str {
                match self {
                    $(Self::$variant => $name,)+
                }
            }

            /// Finds a variant by its name.
            pub fn from_name(name: &str) -> Option<Self> {
                Self::ALL.into_iter().find(|it| it.as_str() == name)
            }
        }
    };
}
pub(crate) use names;
