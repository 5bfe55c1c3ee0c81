//! Who gets a place, and whose turn is next.

#![allow(clippy::unwrap_used)]

use std::pin::pin;
use std::task::{Context, Waker};

use super::admissions::{Admissions, FORWARD_THREADS, requests, streams};
use super::{classes::Share, *};

const OWNERS: [&str; 4] = ["usr_a", "usr_b", "usr_c", "usr_d"];

/// Whether a place has its turn.
fn has_turn(place: &mut WorkPlace) -> bool {
    pin!(place.wait_for_turn()).poll(&mut Context::from_waker(Waker::noop())).is_ready()
}

fn refused(entered: Result<WorkPlace, ApiError>) -> Option<Code> {
    entered.err().map(|error| error.code())
}

#[test]
fn an_owner_has_one_running_and_one_waiting_reconciliation() {
    let all = Admissions::default().reconciliations;
    let owner = Id::new("usr_a");
    let (mut first, mut second) = (all.for_owner(&owner).unwrap(), all.for_owner(&owner).unwrap());
    assert!(has_turn(&mut first) && !has_turn(&mut second), "although a place is free");
    let error = all.for_owner(&owner).err().unwrap();
    assert_eq!(error.code(), Code::RateLimited);
    let message = "the owner of the API key has reached its limit of reconciliations (1 running, 1 waiting); send the request again in 5 seconds";
    assert_eq!(error.message(), message);
    // What it applies is counted apart.
    let mut apply = all.enter(Some(&owner), SlotPool::Reserved).unwrap();
    assert!(has_turn(&mut apply));
    drop(first);
    assert!(has_turn(&mut second));
    drop((second, apply));
    assert_eq!((all.running(), all.waiting(), all.refusals()), (0, 0, [("owner", 1), ("full", 0)]));
}

#[test]
fn plans_leave_places_to_applies() {
    let all = Admissions::default().reconciliations;
    let owner = |number: usize| Id::new(&format!("usr_{number}"));
    let plans: Vec<WorkPlace> = (0..100).map_while(|number| all.for_owner(&owner(number)).ok()).collect();
    assert_eq!((plans.len(), all.running(), all.waiting()), (10, 2, 8));
    let error = all.for_owner(&owner(100)).err().unwrap();
    assert_eq!(error.code(), Code::Unavailable);
    assert!(error.message().starts_with("the server has reached its limit of reconciliations (2 running, 8 waiting)"));
    let mut applies: Vec<WorkPlace> =
        (0..100).map_while(|number| all.enter(Some(&owner(number)), SlotPool::Reserved).ok()).collect();
    let turns: Vec<bool> = applies.iter_mut().map(has_turn).collect();
    assert_eq!(turns, [true, false, false, false, false]);
    // Applies wait for one another, and not for plans.
    drop(applies.remove(0));
    assert!(has_turn(applies.first_mut().unwrap()));
    drop((plans, applies));
    assert_eq!((all.running(), all.waiting()), (0, 0));
}

#[test]
fn owners_take_turns_however_many_requests_they_send() {
    let all = Slots::new(Class { running: 1, owner_running: Share::Most(1), ..Admissions::default().searches.0.class });
    let running = all.for_owner(&Id::new("usr_a")).unwrap();
    // Much of one owner comes first.
    let of = ["usr_a", "usr_a", "usr_a", "usr_a", "usr_b", "usr_b", "usr_c"];
    let mut waiting: Vec<(&str, WorkPlace)> =
        of.into_iter().map(|owner| (owner, all.for_owner(&Id::new(owner)).unwrap())).collect();
    let mut order = Vec::new();
    drop(running);
    while let Some(at) = waiting.iter_mut().position(|(_, place)| has_turn(place)) {
        let (owner, place) = waiting.remove(at);
        order.push(owner);
        drop(place);
    }
    assert_eq!(order, ["usr_b", "usr_c", "usr_a", "usr_b", "usr_a", "usr_a", "usr_a"]);
    assert_eq!(all.waiting(), 0);
}

#[test]
fn a_further_request_does_not_overtake_one_that_waits() {
    let all = Slots::new(Class { running: 1, ..Admissions::default().searches.0.class });
    let mut running = all.for_owner(&Id::new("usr_a")).unwrap();
    let mut waiting = all.for_owner(&Id::new("usr_b")).unwrap();
    let mut again = all.for_owner(&Id::new("usr_a")).unwrap();
    assert!(has_turn(&mut running) && !has_turn(&mut waiting));
    drop(running);
    assert!(has_turn(&mut waiting) && !has_turn(&mut again));
    drop(waiting);
    assert!(has_turn(&mut again));
}

#[test]
fn changes_are_judged_for_owners_in_turns() {
    // As on a machine with two processors.
    let all = Slots::new(Class { running: 1, ..Admissions::default().judgements.0.class });
    let [a, b, ..] = OWNERS.map(Id::new);
    let mut flood: Vec<WorkPlace> = (0..1000).map_while(|_| all.for_owner(&a).ok()).collect();
    assert_eq!(flood.len(), 257, "one runs, and the others wait");
    let mut change = all.for_owner(&b).unwrap();
    assert!(has_turn(flood.first_mut().unwrap()) && !has_turn(&mut change));
    drop(flood.remove(0));
    assert!(has_turn(&mut change), "it waits for one of them");
}

#[test]
fn a_request_that_goes_away_while_it_waits_frees_its_place() {
    let all = Admissions::default().reconciliations;
    let owner = Id::new("usr_a");
    let running = all.for_owner(&owner).unwrap();
    let gone = all.for_owner(&owner).unwrap();
    assert_eq!(refused(all.for_owner(&owner)), Some(Code::RateLimited));
    drop(gone);
    let mut next = all.for_owner(&owner).unwrap();
    drop(running);
    // Its turn has come before anybody has asked for it.
    assert_eq!((all.running(), all.waiting()), (1, 0));
    drop(all.for_owner(&owner).unwrap());
    assert!(has_turn(&mut next));
    drop(next);
    assert_eq!((all.running(), all.waiting()), (0, 0));
}

#[test]
fn one_backup_of_an_owner_and_two_of_all_are_made_at_a_time() {
    let backups = Admissions::default().backups;
    let [a, b, c, _] = OWNERS.map(Id::new);
    let first = backups.for_owner(&a).unwrap();
    assert_eq!(refused(backups.for_owner(&a)), Some(Code::RateLimited));
    let second = backups.for_owner(&b).unwrap();
    assert_eq!(refused(backups.for_owner(&c)), Some(Code::Unavailable));
    drop((first, second));
    assert!(backups.for_owner(&a).is_ok());
}

#[test]
fn clients_without_an_owner_have_all_places_and_no_share() {
    let hooks = Admissions::default().hooks;
    let places: Vec<WorkPlace> = (0..100).map_while(|_| hooks.enter(None, SlotPool::Shared).ok()).collect();
    assert_eq!((places.len(), hooks.running()), (8, 2));
    assert_eq!(refused(hooks.enter(None, SlotPool::Shared)), Some(Code::Unavailable));
}

#[test]
fn an_address_has_a_share_of_the_sign_ins() {
    let sign_ins = Admissions::default().sign_ins;
    let (a, b) = (Id::new("address:192.0.2.1"), Id::new("address:192.0.2.2"));
    let places: Vec<WorkPlace> = (0..100).map_while(|_| sign_ins.for_owner(&a).ok()).collect();
    assert_eq!((places.len(), sign_ins.running()), (10, 2));
    let refused = sign_ins.for_owner(&a).err().unwrap();
    assert!(refused.message().starts_with("your address has reached its limit of sign-ins"), "{}", refused.message());
    assert!(sign_ins.for_owner(&b).is_ok());
}

#[test]
fn renderings_and_reads_of_gateways_are_never_refused() {
    let Admissions { renderings, gateway_reads, .. } = Admissions::default();
    for all in [renderings, gateway_reads] {
        let owner = Id::new("usr_a");
        let places: Vec<WorkPlace> = (0..200).map_while(|_| all.for_owner(&owner).ok()).collect();
        assert_eq!(places.len(), 200);
    }
}

#[test]
fn the_places_of_every_class_add_up() {
    let admissions = Admissions::default();
    let further = [FORWARD_THREADS, requests(1024), streams(1)];
    for class in admissions.all().into_iter().map(|slots| slots.0.class).chain(further) {
        assert!(class.reserved_running < class.running && class.reserved_waiting <= class.waiting, "{class:?}");
    }
}
