//! Which endpoints a kind has.

/// Whether an endpoint exists, and whether it is in the API specification.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Offer {
    /// In the specification.
    Specified,
    /// An extension of the specification (D24).
    Extension,
    /// Not available.
    Absent,
}

/// The endpoints of a kind.
#[derive(Debug, Clone, Copy)]
#[allow(missing_docs)]
pub struct Offers {
    pub create: Offer,
    pub list: Offer,
    pub get: Offer,
    pub patch: Offer,
    pub delete: Offer,
}

impl Offers {
    /// All five, as in the specification.
    pub const ALL: Offers = Offers::every(Offer::Specified);
    /// None, for an internal kind.
    pub const NONE: Offers = Offers::every(Offer::Absent);
    /// The specified endpoints of edges and routes, and extensions to list and delete them.
    pub const EDGE: Offers = Offers { list: Offer::Extension, delete: Offer::Extension, ..Offers::ALL };
    /// All five, as extensions.
    pub const EXTENSION: Offers = Offers::every(Offer::Extension);
    /// Read-only, for an implicit kind.
    pub const IMPLICIT: Offers = Offers { list: Offer::Extension, get: Offer::Extension, ..Offers::NONE };

    const fn every(offer: Offer) -> Self {
        Self { create: offer, list: offer, get: offer, patch: offer, delete: offer }
    }
}
