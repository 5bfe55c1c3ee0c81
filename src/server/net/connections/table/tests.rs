//! New connections take the places of those that need theirs least.

use super::*;

fn table(most: usize, most_per_address: Option<usize>) -> Arc<ConnectionTable> {
    ConnectionTable::new(ConnectionLimits { most, most_per_address, ..ConnectionLimits::default() })
}

const HOME: IpAddr = IpAddr::V4(std::net::Ipv4Addr::LOCALHOST);
const OTHER: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(192, 0, 2, 7));

async fn admit(table: &Arc<ConnectionTable>, address: IpAddr) -> Result<ConnectionSlot, RefusalReason> {
    match (table.slot(address), table.queue(address)) {
        (Some(slot), _) => Ok(slot),
        (None, queue) => queue.await.ok_or(RefusalReason::Address)?.slot().await,
    }
}

/// Drops a slot when its connection is to be closed, as its task does.
fn attend(slot: ConnectionSlot) {
    tokio::spawn(async move {
        slot.activity().closed().await;
        drop(slot);
    });
}

#[tokio::test]
async fn a_full_table_closes_the_connection_that_never_had_a_request() {
    let table = table(3, None);
    let busy = admit(&table, HOME).await.ok();
    let _request = busy.as_ref().map(|slot| slot.activity().begin(false));
    let idle = admit(&table, HOME).await.ok();
    drop(idle.as_ref().map(|slot| slot.activity().begin(false)));
    let silent = admit(&table, HOME).await.ok();
    let states: Vec<Arc<Activity>> =
        [&busy, &idle, &silent].into_iter().flatten().map(|it| Arc::clone(it.activity())).collect();
    [idle, silent].into_iter().flatten().for_each(attend);
    // A younger one would keep its place.
    sleep(LEAST_AGE).await;
    let reasons = || states.iter().map(|it| it.close_reason()).collect::<Vec<_>>();

    let next = admit(&table, HOME).await;
    assert!(next.is_ok());
    assert_eq!(reasons(), [None, None, Some(CloseReason::EvictedSilent)]);
    let _next = next.map(|slot| (slot.activity().begin(false), slot));
    let last = admit(&table, HOME).await;
    assert_eq!(reasons(), [None, Some(CloseReason::EvictedIdle), Some(CloseReason::EvictedSilent)]);
    let _last = last.map(|slot| (slot.activity().begin(false), slot));
    assert_eq!(admit(&table, HOME).await.err(), Some(RefusalReason::Full));
    drop(busy);
    assert!(admit(&table, HOME).await.is_ok());
}

#[tokio::test]
async fn an_address_over_its_limit_closes_its_own_connections() {
    let table = table(100, Some(2));
    let stranger = admit(&table, HOME).await.ok();
    let mut own = Vec::new();
    for _ in 0..20 {
        if let Ok(slot) = admit(&table, OTHER).await {
            own.push(Arc::clone(slot.activity()));
            attend(slot);
        }
    }
    assert_eq!(own.len(), 20, "none of them has a request");
    let staying = own.iter().filter(|it| it.close_reason().is_none()).count();
    assert!(staying <= 2, "{staying}");
    assert_eq!(stranger.as_ref().and_then(|slot| slot.activity().close_reason()), None);
    let _requests: Vec<_> = own.iter().map(|it| it.begin(false)).collect();
    assert_eq!(admit(&table, OTHER).await.err(), Some(RefusalReason::Address));
    assert!(admit(&table, HOME).await.is_ok());
}

#[tokio::test]
async fn a_place_is_free_when_its_connection_has_ended() {
    let table = table(1, Some(1));
    for _ in 0..50 {
        let slot = admit(&table, OTHER).await.ok();
        let _request = slot.as_ref().map(|slot| slot.activity().begin(false));
        assert!(slot.is_some());
        drop(slot);
    }
    assert!(table.open.lock().all.is_empty() && table.open.lock().of_address.is_empty());
}

#[test]
fn idle_connections_give_way_at_once_while_new_ones_are_silent() {
    let table = table(256, None);
    let before = Instant::now();
    let idle: Vec<ConnectionSlot> = (0..255).filter_map(|_| table.slot(HOME)).collect();
    idle.iter().for_each(|slot| drop(slot.activity().begin(false)));
    let silent = table.slot(HOME).unwrap();
    assert!(table.slot(HOME).is_none(), "it is full");
    // No time has passed since the silent one came.
    assert_eq!(table.make_room(None, 1, before), MadeRoom::Soon);
    let closed = idle.iter().filter(|slot| slot.activity().close_reason() == Some(CloseReason::EvictedIdle)).count();
    assert_eq!(closed, 256 / BATCH);
    assert_eq!(silent.activity().close_reason(), None);
    // The connections that are being closed are enough for one search.
    let _search = Arc::clone(&table.searching);
    assert_eq!(table.make_places(), MadeRoom::Soon);
    let closing = idle.iter().filter(|slot| slot.activity().close_reason().is_some()).count();
    assert_eq!(closing, closed);
}

#[tokio::test]
async fn one_address_cannot_fill_the_queue() {
    let table = table(1000, Some(2));
    let mut waiting = Vec::new();
    while let Some(next) = table.queue(OTHER).await {
        waiting.push(next);
    }
    assert_eq!(waiting.len(), MOST_WAITING / 4);
    assert!(table.queue(HOME).await.is_some());
    waiting.pop();
    assert!(table.queue(OTHER).await.is_some());
    waiting.clear();
    assert!(table.open.lock().waiting.is_empty());
}

#[test]
fn a_full_table_waits_less_for_clients_that_take_nothing() {
    let table = table(3, None);
    let (start, moment) = (Instant::now(), Duration::from_millis(1));
    let answered = |address: IpAddr, at: Instant| {
        let slot = table.slot(address).unwrap();
        let mut flight = slot.activity().begin(false);
        flight.answered(100, at);
        (slot, flight)
    };
    let alone = answered(OTHER, start);
    let crowd = [answered(HOME, start + moment), answered(HOME, start + 2 * moment)];
    assert_eq!(table.make_room(None, 1, start), MadeRoom::After(SHORT_GRACE));
    assert_eq!(table.make_room(None, 1, start + 2 * moment + SHORT_GRACE), MadeRoom::Soon);
    // The oldest one of the address with the most connections.
    let reason = |(slot, _): &(ConnectionSlot, _)| slot.activity().close_reason();
    assert_eq!((reason(&alone), reason(&crowd[1])), (None, None));
    assert_eq!(reason(&crowd[0]), Some(CloseReason::EvictedStalled));
}
