//! Modules in which a lint finds nothing. Many routes share a module, because they take it from one module set.

use std::ptr;

use foldhash::HashSet;

use super::finding::Findings;

/// Modules in which a lint found nothing, by their addresses. All of them must outlive it.
#[derive(Default)]
pub(super) struct CleanModules(HashSet<*const ()>);

impl CleanModules {
    /// Judges a module, unless nothing was found in it before. Whether something is found must not depend on the resource
    /// that has the module.
    pub(super) fn judge<M: ?Sized>(&mut self, module: &M, findings: &mut Findings, check: impl FnOnce(&mut Findings)) {
        let address = ptr::from_ref(module).cast::<()>();
        if self.0.contains(&address) {
            return;
        }
        let before = findings.found.len();
        check(findings);
        if findings.found.len() == before {
            self.0.insert(address);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Id, Key, Kind};

    #[test]
    fn only_a_module_without_a_finding_is_judged_once() {
        let (sound, faulty) = (Box::new(1_u32), Box::new(2_u32));
        let (mut known, mut findings, mut judged) = (CleanModules::default(), Findings::default(), Vec::new());
        let key = Key::new(Kind::HttpsEdge, Id::new("edghts_1"));
        for module in [&sound, &faulty, &sound, &faulty] {
            known.judge(&**module, &mut findings, |findings| {
                judged.push(**module);
                if **module == 2 {
                    findings.report(&key, ["match"], "two");
                }
            });
        }
        assert_eq!((judged, findings.found.len()), (vec![1, 2, 2], 2));
    }
}
