//! New connections take the places of those that need theirs least.

use super::*;

fn table(most: usize, most_per_address: Option<usize>) -> Arc<ConnectionTable> {
    ConnectionTable::new(ConnectionLimits { most, most_per_address, ..ConnectionLimits::default() })
}

fn run<T>(test: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(test)
}

const HOME: IpAddr = IpAddr::V4(std::net::Ipv4Addr::LOCALHOST);
const OTHER: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(192, 0, 2, 7));

/// Drops a seat when its connection is to be closed, as its task does.
fn attend(seat: Seat) {
    tokio::spawn(async move {
        seat.activity().closed().await;
        drop(seat);
    });
}

#[test]
fn a_full_table_closes_the_connection_that_never_had_a_request() {
    run(async {
        let table = table(3, None);
        let busy = table.admit(HOME).await.ok();
        let _request = busy.as_ref().map(|seat| seat.activity().begin(false));
        let idle = table.admit(HOME).await.ok();
        drop(idle.as_ref().map(|seat| seat.activity().begin(false)));
        let silent = table.admit(HOME).await.ok();
        let states: Vec<Arc<Activity>> =
            [&busy, &idle, &silent].into_iter().flatten().map(|it| Arc::clone(it.activity())).collect();
        [idle, silent].into_iter().flatten().for_each(attend);
        let reasons = || states.iter().map(|it| it.close_reason()).collect::<Vec<_>>();

        let next = table.admit(HOME).await;
        assert!(next.is_ok());
        assert_eq!(reasons(), [None, None, Some(CloseReason::EvictedSilent)]);
        let _next = next.map(|seat| (seat.activity().begin(false), seat));
        let last = table.admit(HOME).await;
        assert_eq!(reasons(), [None, Some(CloseReason::EvictedIdle), Some(CloseReason::EvictedSilent)]);
        let _last = last.map(|seat| (seat.activity().begin(false), seat));
        assert_eq!(table.admit(HOME).await.err(), Some(RefusedFor::Full));
        drop(busy);
        assert!(table.admit(HOME).await.is_ok());
    });
}

#[test]
fn an_address_over_its_limit_closes_its_own_connections() {
    run(async {
        let table = table(100, Some(2));
        let stranger = table.admit(HOME).await.ok();
        let mut own = Vec::new();
        for _ in 0..20 {
            if let Ok(seat) = table.admit(OTHER).await {
                own.push(Arc::clone(seat.activity()));
                attend(seat);
            }
        }
        assert_eq!(own.len(), 20, "none of them has a request");
        let staying = own.iter().filter(|it| it.close_reason().is_none()).count();
        assert!(staying <= 2, "{staying}");
        assert_eq!(stranger.as_ref().and_then(|seat| seat.activity().close_reason()), None);
        let _requests: Vec<_> = own.iter().map(|it| it.begin(false)).collect();
        assert_eq!(table.admit(OTHER).await.err(), Some(RefusedFor::Address));
        assert!(table.admit(HOME).await.is_ok());
    });
}

#[test]
fn a_place_is_free_when_its_connection_has_ended() {
    run(async {
        let table = table(1, Some(1));
        for _ in 0..50 {
            let seat = table.admit(OTHER).await.ok();
            let _request = seat.as_ref().map(|seat| seat.activity().begin(false));
            assert!(seat.is_some());
            drop(seat);
        }
        assert!(table.open().all.is_empty() && table.open().of_address.is_empty());
    });
}
