//! A lane in a world that a test makes up, for every order of events.

use std::collections::BTreeSet;

use proptest::prelude::*;

use super::*;

/// What can happen to a lane.
#[derive(Clone, Copy, Debug)]
enum Happening {
    Time(u64),
    StepDone,
    StepFailed,
    KubeletReplaced,
    KubeletGone,
    OwnSocketLost,
    Accepted,
    Refused,
    NotAnswered,
    NotReached,
    StreamOpened,
    ListTaken,
    StreamEnded,
    PredecessorEnded,
    EndpointEnded,
}

fn happening() -> impl Strategy<Value = Happening> {
    use Happening as H;
    prop_oneof![
        4 => (0..7_000_u64).prop_map(H::Time),
        8 => Just(H::StepDone),
        1 => Just(H::StepFailed),
        1 => Just(H::KubeletReplaced),
        1 => Just(H::KubeletGone),
        1 => Just(H::OwnSocketLost),
        3 => Just(H::Accepted),
        1 => Just(H::Refused),
        1 => Just(H::NotAnswered),
        1 => Just(H::NotReached),
        3 => Just(H::StreamOpened),
        3 => Just(H::ListTaken),
        1 => Just(H::StreamEnded),
        2 => Just(H::PredecessorEnded),
        1 => Just(H::EndpointEnded),
    ]
}

/// A lane and what is around it.
struct World {
    lane: Lane,
    view: View,
    made: u64,
    /// Sockets that a kubelet may have heard of.
    used: BTreeSet<EndpointId>,
    closing: BTreeSet<EndpointId>,
    asking: Option<EndpointId>,
}

impl World {
    fn new() -> Self {
        let now = Instant::now();
        let kubelet = Some(Identity::new([0; 4]));
        World {
            lane: Lane::new(now),
            view: View { now, kubelet, own_in_place: false },
            made: 0,
            used: BTreeSet::new(),
            closing: BTreeSet::new(),
            asking: None,
        }
    }

    fn happen(&mut self, happening: Happening) {
        let now = self.view.now;
        match happening {
            Happening::Time(millis) => self.view.now += Duration::from_millis(millis),
            Happening::StepDone => self.take_step(),
            Happening::StepFailed => {
                if let Step::Bind(_) = self.lane.step(&self.view) {
                    self.lane.bind_failed("disk full".to_owned(), now);
                }
            }
            Happening::KubeletReplaced => {
                self.made += 1;
                self.view.kubelet = Some(Identity::new([self.made, 0, 0, 0]));
            }
            Happening::KubeletGone => self.view.kubelet = None,
            Happening::OwnSocketLost => self.view.own_in_place = false,
            Happening::Accepted => {
                if self.answer(Socket::Used) {
                    self.lane.registered(now);
                }
            }
            Happening::Refused | Happening::NotAnswered => {
                self.fail(Failure::Refused, Socket::Used);
            }
            Happening::NotReached => self.fail(Failure::Unreachable, Socket::Unused),
            // A kubelet asks for lists on sockets that it was told of.
            Happening::StreamOpened if self.lane.asked.is_some() => self.lane.stream_opened(now),
            Happening::StreamOpened => {}
            Happening::ListTaken => {
                if self.lane.has_stream() {
                    self.lane.list_taken();
                }
            }
            Happening::StreamEnded => {
                if self.lane.has_stream() {
                    self.lane.stream_ended(now);
                }
            }
            Happening::PredecessorEnded => {
                if let Some(endpoint) = self.closing.pop_first() {
                    self.lane.endpoint_ended(endpoint, now);
                }
            }
            Happening::EndpointEnded => {
                if let Some(endpoint) = self.lane.endpoint() {
                    self.lane.endpoint_ended(endpoint, now);
                }
            }
        }
    }

    fn take_step(&mut self) {
        let known = self.lane.asked;
        match self.lane.step(&self.view) {
            Step::Wait => {}
            Step::Bind(cause) => {
                self.made += 1;
                self.closing.extend(self.lane.endpoint());
                self.lane.bound(EndpointId(self.made), cause, self.view.now);
                self.view.own_in_place = true;
                self.asking = None;
            }
            Step::Register(kubelet) => {
                let endpoint = self.lane.endpoint().expect("only a socket can be registered");
                assert!(self.view.own_in_place, "the socket is not there");
                assert!(!self.used.contains(&endpoint), "the socket may be registered");
                assert!(known != Some(kubelet) || self.closing.is_empty(), "old streams remain");
                self.lane.asking(kubelet);
                self.asking = Some(endpoint);
            }
        }
    }

    /// Whether an answer was waited for.
    fn answer(&mut self, socket: Socket) -> bool {
        let Some(asking) = self.asking.take() else { return false };
        if socket == Socket::Used {
            self.used.insert(asking);
        }
        true
    }

    fn fail(&mut self, failure: Failure, socket: Socket) {
        if self.answer(socket) {
            let error = "no".to_owned();
            self.lane.not_registered(NotRegistered { failure, socket, error }, self.view.now);
        }
    }

    /// From here on everything works.
    fn settles_within(&mut self, limit: Duration) -> bool {
        let end = self.view.now + limit;
        if self.view.kubelet.is_none() {
            self.happen(Happening::KubeletReplaced);
        }
        while self.view.now < end {
            while !self.closing.is_empty() {
                self.happen(Happening::PredecessorEnded);
            }
            self.take_step();
            if self.asking.is_some() {
                self.happen(Happening::Accepted);
                self.happen(Happening::StreamOpened);
            }
            self.happen(Happening::ListTaken);
            let settled = self.lane.is_settled() && self.lane.cause(&self.view).is_none();
            if settled && self.lane.state == ResourceState::ListDelivered {
                return self.lane.step(&self.view) == Step::Wait;
            }
            self.view.now += Duration::from_millis(50);
        }
        false
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    /// Whatever has happened, once things work the resource is registered, on a socket
    /// that no kubelet had heard of, and stays so.
    #[test]
    fn every_way_leads_back(happenings in prop::collection::vec(happening(), 0..80)) {
        let mut world = World::new();
        for happening in happenings {
            world.happen(happening);
        }
        // The longest delay there is, and the time to be told once more.
        prop_assert!(world.settles_within(Duration::from_secs(40)), "{:?}", world.lane);
        let state = world.lane.state.clone();
        for _ in 0..100 {
            world.happen(Happening::Time(1_000));
            prop_assert_eq!(world.lane.step(&world.view), Step::Wait);
        }
        prop_assert_eq!(&world.lane.state, &state);
    }

    /// A lane that waits says until when, so that nobody has to look before.
    #[test]
    fn a_delay_is_announced(
        happenings in prop::collection::vec(happening(), 0..40), part in 0.0..1.0_f64,
    ) {
        let mut world = World::new();
        for happening in happenings {
            world.happen(happening);
        }
        while world.lane.step(&world.view) != Step::Wait {
            world.take_step();
        }
        let now = world.view.now;
        let announced = world.lane.wakes_at(now).map_or(Duration::from_secs(3600), |at| at - now);
        world.view.now = now + announced.mul_f64(part).saturating_sub(Duration::from_nanos(1));
        prop_assert_eq!(world.lane.step(&world.view), Step::Wait);
    }
}

#[test]
fn a_new_kubelet_is_asked_without_delay() {
    let mut world = World::new();
    // The delays of four refusals, and the beginning of the fifth's.
    for _ in 0..5 {
        world.happen(Happening::Time(2_000));
        world.take_step();
        world.happen(Happening::PredecessorEnded);
        world.happen(Happening::Time(60));
        world.take_step();
        assert!(world.asking.is_some());
        world.happen(Happening::Refused);
    }
    world.happen(Happening::Time(500));
    assert_eq!(world.lane.step(&world.view), Step::Wait);
    world.happen(Happening::KubeletReplaced);
    assert_eq!(world.lane.step(&world.view), Step::Bind(Cause::Retry));
    world.take_step();
    assert!(matches!(world.lane.step(&world.view), Step::Register(_)));
}

#[test]
fn a_socket_that_is_lost_at_once_is_not_made_anew_at_once() {
    let mut world = World::new();
    world.take_step();
    let mut made = 0;
    for _ in 0..100 {
        world.happen(Happening::OwnSocketLost);
        made += u32::from(matches!(world.lane.step(&world.view), Step::Bind(_)));
        world.take_step();
        world.happen(Happening::Time(100));
    }
    assert!((15..30).contains(&made), "{made}");
}

#[test]
fn a_stream_on_a_nameless_socket_is_kept_while_there_is_no_kubelet_to_ask() {
    let mut world = World::new();
    assert!(world.settles_within(Duration::from_secs(1)));
    world.happen(Happening::Time(1_000));
    world.view.own_in_place = false;
    world.view.kubelet = None;
    assert_eq!(world.lane.step(&world.view), Step::Wait);
    world.happen(Happening::KubeletReplaced);
    assert_eq!(world.lane.step(&world.view), Step::Bind(Cause::SocketLost));
}
