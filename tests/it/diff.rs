//! `edgewright diff`: two folders of manifests compared, without any store.

use crate::cli::{Folder, copy};

#[test]
fn two_folders_are_compared_without_a_store() {
    let folder = Folder::with_storefront();
    copy(&folder.path("storefront"), &folder.path("next"));
    let same = folder.ok("diff --detailed-exitcode storefront next");
    assert!(same.out.contains("No changes: 24 unchanged."), "{}", same.out);

    folder.edit("next/shop/storefront.yaml", "Product pages", "All products");
    std::fs::remove_file(folder.path("next/teams/search/route.yaml")).unwrap();
    let run = folder.run("diff --detailed-exitcode storefront next");
    assert_eq!(run.code, 2, "{}", run.all());
    assert!(run.out.contains("+ description: All products") && run.out.contains("- HttpsEdgeRoute storefront/search"));
    assert!(run.out.contains("0 to create, 1 to change, 0 to replace, 1 to delete, 22 unchanged"), "{}", run.out);
    // The way back is the opposite.
    let back = folder.ok("diff next storefront");
    assert!(back.out.contains("1 to create, 1 to change, 0 to replace, 0 to delete, 22 unchanged"), "{}", back.out);
    assert!(!folder.path("edgewright.db").exists() && !folder.path("store").exists());
}

#[test]
fn either_folder_can_be_at_fault() {
    let folder = Folder::with_storefront();
    folder
        .write("bad/a.yaml", "apiVersion: edgewright/v1\nkind: HttpsEdge\nmetadata: {name: a}\nspec: {hostport: []}\n");
    for line in ["diff bad storefront", "diff storefront bad"] {
        let run = folder.run(line);
        assert_eq!((run.code, run.err.contains("bad/a.yaml:4:8")), (3, true), "{line}: {}", run.err);
    }
}
