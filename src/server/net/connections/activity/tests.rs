//! Which connections give way, which have had enough time, and which requests wait.

use super::*;

fn at(start: Instant, seconds: u64) -> Instant {
    start + Duration::from_secs(seconds)
}

fn limits() -> ConnectionLimits {
    let seconds = Duration::from_secs;
    ConnectionLimits { most: 10, most_per_address: None, head: seconds(15), idle: seconds(60), stall: seconds(30) }
}

#[test]
fn a_silent_client_has_time_for_the_first_head() {
    let start = Instant::now();
    let activity = Activity::new(start);
    assert_eq!(activity.eviction(), Some((CloseReason::EvictedSilent, start)));
    assert_eq!(activity.overdue(&limits(), at(start, 15)), None);
    assert_eq!(activity.overdue(&limits(), at(start, 16)), Some(CloseReason::HeadTimeout));
    // A handshake has a time of its own.
    activity.note_secured(at(start, 10));
    assert_eq!(activity.overdue(&limits(), at(start, 16)), None);
    assert_eq!(activity.overdue(&limits(), at(start, 26)), Some(CloseReason::HeadTimeout));
}

#[test]
fn a_request_keeps_its_connection_unless_the_client_takes_nothing() {
    let start = Instant::now();
    let activity = Arc::new(Activity::new(start));
    let mut flight = activity.begin(false);
    assert_eq!(activity.eviction(), None, "the server is at work");
    assert_eq!(activity.overdue(&limits(), at(start, 1000)), None);
    assert!(flight.enter());
    flight.answered(100, start);
    assert_eq!(activity.eviction(), Some((CloseReason::EvictedStalled, start)));
    assert_eq!(activity.overdue(&limits(), at(start, 31)), Some(CloseReason::Stalled));
    flight.handed(10, at(start, 20));
    assert_eq!(activity.overdue(&limits(), at(start, 31)), None, "it takes something");
    // A stream of events has sent everything there is.
    flight.caught_up();
    assert_eq!((activity.eviction(), activity.overdue(&limits(), at(start, 900))), (None, None));
    // The socket takes nothing, although there is no response to take.
    activity.note_written(None, at(start, 900));
    activity.note_written(None, at(start, 910));
    assert_eq!(activity.overdue(&limits(), at(start, 931)), Some(CloseReason::Stalled));
    activity.note_written(Some(1), at(start, 931));
    assert_eq!(activity.overdue(&limits(), at(start, 1000)), None);
}

#[test]
fn a_client_must_take_as_much_of_a_large_part_as_of_small_ones() {
    let start = Instant::now();
    let activity = Arc::new(Activity::new(start));
    let mut flight = activity.begin(false);
    assert!(flight.enter());
    flight.answered(10 * LEAST_TAKEN, start);
    flight.handed(8 * LEAST_TAKEN, start);
    for second in 1..=20 {
        activity.note_written(Some(1), at(start, second));
    }
    assert_eq!(activity.overdue(&limits(), at(start, 31)), Some(CloseReason::Stalled));
    activity.note_written(Some(LEAST_TAKEN), at(start, 30));
    assert_eq!(activity.overdue(&limits(), at(start, 31)), None);
    assert_eq!(activity.overdue(&limits(), at(start, 61)), Some(CloseReason::Stalled));
}

#[test]
fn an_idle_client_has_time_for_the_next_request_and_less_for_its_head() {
    let activity = Arc::new(Activity::new(Instant::now()));
    drop(activity.begin(false));
    let idle = Instant::now();
    assert!(matches!(activity.eviction(), Some((CloseReason::EvictedIdle, _))));
    assert_eq!(activity.overdue(&limits(), at(idle, 59)), None);
    assert_eq!(activity.overdue(&limits(), at(idle, 61)), Some(CloseReason::IdleTimeout));
    activity.note_read(at(idle, 10));
    activity.note_read(at(idle, 20));
    assert_eq!(activity.overdue(&limits(), at(idle, 26)), Some(CloseReason::HeadTimeout));
    // Pings of HTTP/2 begin no head.
    let other = Arc::new(Activity::new(Instant::now()));
    drop(other.begin(true));
    other.note_read(Instant::now());
    assert_eq!(other.overdue(&limits(), at(Instant::now(), 26)), None);
}

#[test]
fn a_connection_is_evicted_once() {
    let activity = Activity::new(Instant::now());
    activity.close(CloseReason::EvictedSilent);
    assert_eq!(activity.eviction(), None);
    assert_eq!(activity.close_reason(), Some(CloseReason::EvictedSilent));
}

#[test]
fn requests_wait_while_the_client_has_much_to_read() {
    let activity = Arc::new(Activity::new(Instant::now()));
    let now = Instant::now();
    let mut flights: Vec<RequestInProgress> = (0..FREE).map(|_| activity.begin(true)).collect();
    for flight in &mut flights {
        assert!(flight.enter(), "a few requests never wait");
        flight.answered(MOST_UNSENT, now);
    }
    let mut next = activity.begin(true);
    assert!(!next.enter());
    // The client takes all but one response.
    for flight in flights.iter_mut().skip(1) {
        flight.handed(MOST_UNSENT, now);
    }
    assert!(!next.enter());
    if let Some(flight) = flights.first_mut() {
        flight.handed(1, now);
    }
    assert!(next.enter());
    // Requests that run count as well, before their responses are known.
    let mut running: Vec<RequestInProgress> = (0..100).map(|_| activity.begin(true)).collect();
    let entered = running.iter_mut().filter_map(|flight| flight.enter().then_some(())).count();
    assert!(entered < MOST_UNSENT / EXPECTED, "{entered}");
    drop((flights, next, running));
    let state = activity.state.lock();
    assert_eq!((state.in_flight, state.admitted, state.running, state.unsent), (0, 0, 0, 0));
}
