//! What holds for the repository: its pages, packages, recipes, dependencies and the shape of its code.

pub(crate) mod ci_recipes;
pub(crate) mod conventions;
pub(crate) mod dependencies;
mod examples;
pub(crate) mod imports;
pub(crate) mod packaging;
pub(crate) mod pages;
pub(crate) mod reference;
mod source_files;
