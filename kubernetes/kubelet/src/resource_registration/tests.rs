//! A registration with a simulated kubelet and simulated sockets, for every order of events.

use std::collections::BTreeSet;

use proptest::prelude::*;

use super::*;

/// An event or a change of the environment.
#[derive(Clone, Copy, Debug)]
enum Action {
    Wait(u64),
    StepDone,
    StepFailed,
    KubeletReplaced,
    KubeletRemoved,
    OwnSocketLost,
    Accepted,
    Refused,
    NotAnswered,
    Unreachable,
    StreamOpened,
    ListDelivered,
    StreamEnded,
    ReplacedEndpointEnded,
    EndpointEnded,
    LockRefused,
    LockTaken,
}

fn action() -> impl Strategy<Value = Action> {
    use Action as A;
    prop_oneof![
        4 => (0..7_000_u64).prop_map(A::Wait),
        8 => Just(A::StepDone),
        1 => Just(A::StepFailed),
        1 => Just(A::KubeletReplaced),
        1 => Just(A::KubeletRemoved),
        1 => Just(A::OwnSocketLost),
        3 => Just(A::Accepted),
        1 => Just(A::Refused),
        1 => Just(A::NotAnswered),
        1 => Just(A::Unreachable),
        3 => Just(A::StreamOpened),
        3 => Just(A::ListDelivered),
        1 => Just(A::StreamEnded),
        2 => Just(A::ReplacedEndpointEnded),
        1 => Just(A::EndpointEnded),
        1 => Just(A::LockRefused),
        3 => Just(A::LockTaken),
    ]
}

/// A registration and its environment.
struct Simulation {
    registration: ResourceRegistration,
    sockets: Sockets,
    made: u64,
    /// Endpoints that a kubelet may have registered.
    used: BTreeSet<EndpointId>,
    closing: BTreeSet<EndpointId>,
    in_flight: Option<EndpointId>,
}

impl Simulation {
    fn new() -> Self {
        let now = Instant::now();
        let kubelet = Some(Identity::listed([0; 2]));
        let mut registration = ResourceRegistration::new(now);
        registration.lock_taken(now);
        Simulation {
            registration,
            sockets: Sockets { now, kubelet, own_in_place: false },
            made: 0,
            used: BTreeSet::new(),
            closing: BTreeSet::new(),
            in_flight: None,
        }
    }

    fn apply(&mut self, action: Action) {
        let now = self.sockets.now;
        match action {
            Action::Wait(millis) => self.sockets.now += Duration::from_millis(millis),
            Action::StepDone => self.carry_out_step(),
            Action::StepFailed => {
                if let Step::Bind(_) = self.registration.step(&self.sockets) {
                    self.registration.bind_failed("disk full".to_owned(), now);
                }
            }
            Action::KubeletReplaced => {
                self.made += 1;
                self.sockets.kubelet = Some(Identity::listed([self.made, 0]));
            }
            Action::KubeletRemoved => self.sockets.kubelet = None,
            Action::OwnSocketLost => self.sockets.own_in_place = false,
            Action::Accepted => {
                if self.take_in_flight(SocketUse::MaybeRegistered) {
                    self.registration.registered(now);
                }
            }
            Action::Refused | Action::NotAnswered => {
                self.fail(Failure::Refused, SocketUse::MaybeRegistered);
            }
            Action::Unreachable => self.fail(Failure::Unreachable, SocketUse::NeverRegistered),
            // A kubelet calls ListAndWatch only on sockets that it was given.
            Action::StreamOpened if self.registration.last_kubelet.is_some() => {
                self.registration.stream_opened(now);
            }
            Action::StreamOpened => {}
            Action::ListDelivered => {
                if self.registration.has_stream() {
                    self.registration.list_delivered();
                }
            }
            Action::StreamEnded => {
                if self.registration.has_stream() {
                    self.registration.stream_ended(now);
                }
            }
            Action::ReplacedEndpointEnded => {
                if let Some(endpoint) = self.closing.pop_first() {
                    self.registration.endpoint_ended(endpoint, now);
                }
            }
            Action::EndpointEnded => {
                if let Some(endpoint) = self.registration.endpoint() {
                    self.registration.endpoint_ended(endpoint, now);
                }
            }
            Action::LockRefused => {
                self.registration.lock_refused("process 1".to_owned(), now);
            }
            Action::LockTaken => {
                self.registration.lock_taken(now);
            }
        }
    }

    fn carry_out_step(&mut self) {
        let last_kubelet = self.registration.last_kubelet;
        match self.registration.step(&self.sockets) {
            Step::Wait => {}
            Step::Bind(reason) => {
                self.made += 1;
                self.closing.extend(self.registration.endpoint());
                self.registration.bound(EndpointId(self.made), reason, self.sockets.now);
                self.sockets.own_in_place = true;
                self.in_flight = None;
            }
            Step::Register(kubelet) => {
                let endpoint = self
                    .registration
                    .endpoint()
                    .expect("only an existing socket can be registered");
                assert!(self.sockets.own_in_place, "the socket does not exist");
                assert!(!self.used.contains(&endpoint), "the socket may already be registered");
                assert!(self.registration.holds_lock(), "another daemon serves it");
                assert!(
                    last_kubelet != Some(kubelet) || self.closing.is_empty(),
                    "old streams are still open"
                );
                self.registration.registering(kubelet);
                self.in_flight = Some(endpoint);
            }
        }
    }

    /// Whether a `Register` call was in flight.
    fn take_in_flight(&mut self, socket: SocketUse) -> bool {
        let Some(endpoint) = self.in_flight.take() else { return false };
        if socket == SocketUse::MaybeRegistered {
            self.used.insert(endpoint);
        }
        true
    }

    fn fail(&mut self, failure: Failure, socket: SocketUse) {
        if self.take_in_flight(socket) {
            let error = "no".to_owned();
            self.registration.registration_failed(
                RegistrationFailure { failure, socket, error },
                self.sockets.now,
            );
        }
    }

    /// From here on, every step succeeds.
    fn settles_within(&mut self, limit: Duration) -> bool {
        let end = self.sockets.now + limit;
        if self.sockets.kubelet.is_none() {
            self.apply(Action::KubeletReplaced);
        }
        while self.sockets.now < end {
            while !self.closing.is_empty() {
                self.apply(Action::ReplacedEndpointEnded);
            }
            self.apply(Action::LockTaken);
            self.carry_out_step();
            if self.in_flight.is_some() {
                self.apply(Action::Accepted);
                self.apply(Action::StreamOpened);
            }
            self.apply(Action::ListDelivered);
            let settled = self.registration.is_settled()
                && self.registration.bind_reason(&self.sockets).is_none();
            if settled && self.registration.state == ResourceState::ListDelivered {
                return self.registration.step(&self.sockets) == Step::Wait;
            }
            self.sockets.now += Duration::from_millis(50);
        }
        false
    }
}

proptest! {
    /// After any sequence of events, once every step succeeds, the resource is registered on a
    /// socket that was never registered before, and stays registered.
    #[test]
    fn recovers_from_every_sequence_of_events(actions in prop::collection::vec(action(), 0..80)) {
        let mut simulation = Simulation::new();
        for action in actions {
            simulation.apply(action);
        }
        // The longest retry delay, and time for one more registration.
        prop_assert!(simulation.settles_within(Duration::from_secs(40)), "{:?}", simulation.registration);
        let state = simulation.registration.state.clone();
        for _ in 0..100 {
            simulation.apply(Action::Wait(1_000));
            prop_assert_eq!(simulation.registration.step(&simulation.sockets), Step::Wait);
        }
        prop_assert_eq!(&simulation.registration.state, &state);
    }

    /// `wakes_at` announces every delay, so that the supervisor does not have to poll.
    #[test]
    fn announces_every_delay(
        actions in prop::collection::vec(action(), 0..40), part in 0.0..1.0_f64,
    ) {
        let mut simulation = Simulation::new();
        for action in actions {
            simulation.apply(action);
        }
        while simulation.registration.step(&simulation.sockets) != Step::Wait {
            simulation.carry_out_step();
        }
        let now = simulation.sockets.now;
        let announced = simulation.registration.wakes_at(now).map_or(Duration::from_secs(3600), |at| at - now);
        simulation.sockets.now = now + announced.mul_f64(part).saturating_sub(Duration::from_nanos(1));
        prop_assert_eq!(simulation.registration.step(&simulation.sockets), Step::Wait);
    }
}

#[test]
fn registers_with_a_new_kubelet_without_delay() {
    let mut simulation = Simulation::new();
    // The delays after four refusals, and the start of the delay after the fifth.
    for _ in 0..5 {
        simulation.apply(Action::Wait(2_000));
        simulation.carry_out_step();
        simulation.apply(Action::ReplacedEndpointEnded);
        simulation.apply(Action::Wait(60));
        simulation.carry_out_step();
        assert!(simulation.in_flight.is_some());
        simulation.apply(Action::Refused);
    }
    simulation.apply(Action::Wait(500));
    assert_eq!(simulation.registration.step(&simulation.sockets), Step::Wait);
    simulation.apply(Action::KubeletReplaced);
    assert_eq!(
        simulation.registration.step(&simulation.sockets),
        Step::Bind(BindReason::RegistrationFailed)
    );
    simulation.carry_out_step();
    assert!(matches!(simulation.registration.step(&simulation.sockets), Step::Register(_)));
}

#[test]
fn delays_the_replacement_of_a_socket_that_is_lost_repeatedly() {
    let mut simulation = Simulation::new();
    simulation.carry_out_step();
    let mut made = 0;
    for _ in 0..100 {
        simulation.apply(Action::OwnSocketLost);
        made +=
            u32::from(matches!(simulation.registration.step(&simulation.sockets), Step::Bind(_)));
        simulation.carry_out_step();
        simulation.apply(Action::Wait(100));
    }
    assert!((15..30).contains(&made), "{made}");
}

#[test]
fn keeps_a_stream_on_a_deleted_socket_while_no_kubelet_socket_exists() {
    let mut simulation = Simulation::new();
    assert!(simulation.settles_within(Duration::from_secs(1)));
    simulation.apply(Action::Wait(1_000));
    simulation.sockets.own_in_place = false;
    simulation.sockets.kubelet = None;
    assert_eq!(simulation.registration.step(&simulation.sockets), Step::Wait);
    simulation.apply(Action::KubeletReplaced);
    assert_eq!(
        simulation.registration.step(&simulation.sockets),
        Step::Bind(BindReason::SocketLost)
    );
}

#[test]
fn registers_only_with_the_lock() {
    let now = Instant::now();
    let mut simulation = Simulation::new();
    simulation.registration = ResourceRegistration::new(now);
    simulation.carry_out_step();
    assert_eq!(simulation.registration.step(&simulation.sockets), Step::Wait);
    simulation.apply(Action::LockTaken);
    assert!(matches!(simulation.registration.step(&simulation.sockets), Step::Register(_)));
}

#[test]
fn gives_a_resource_up_without_the_lock_and_registers_with_it() {
    let mut simulation = Simulation::new();
    assert!(simulation.settles_within(Duration::from_secs(1)));
    simulation.apply(Action::LockRefused);
    assert_eq!(simulation.registration.step(&simulation.sockets), Step::Bind(BindReason::LockLost));
    simulation.carry_out_step();
    simulation.apply(Action::ReplacedEndpointEnded);
    for _ in 0..100 {
        simulation.apply(Action::Wait(1_000));
        assert!(
            !simulation.registration.lock_refused("process 2".to_owned(), simulation.sockets.now)
        );
        assert_eq!(simulation.registration.step(&simulation.sockets), Step::Wait);
        let state = simulation.registration.state();
        assert!(matches!(state, ResourceState::WaitingForOtherDaemon { .. }), "{state:?}");
    }
    assert!(simulation.registration.is_settled());
    simulation.apply(Action::LockTaken);
    // The kubelet may not have handled the end of the other daemon yet.
    assert_eq!(simulation.registration.step(&simulation.sockets), Step::Wait);
    simulation.sockets.now += HANDOVER_DELAY;
    assert!(matches!(simulation.registration.step(&simulation.sockets), Step::Register(_)));
}

/// Another plugin that registers the resource makes the kubelet end this one's stream.
#[test]
fn does_not_fight_with_another_plugin() {
    let mut simulation = Simulation::new();
    let (start, mut streams, mut warnings) = (simulation.sockets.now, 0, Vec::new());
    while simulation.sockets.now < start + Duration::from_secs(600) {
        assert!(simulation.settles_within(Duration::from_secs(40)));
        streams += 1;
        simulation.apply(Action::Wait(1_000));
        simulation.registration.stream_ended(simulation.sockets.now);
        warnings.extend(simulation.registration.take_suspicion());
    }
    assert_eq!(warnings, [SUSPICIOUS_ENDS]);
    assert!((20..30).contains(&streams), "{streams}");
    simulation.apply(Action::KubeletReplaced);
    assert!(simulation.settles_within(Duration::from_millis(200)));
}
