use super::*;

const GPU: &str = "example.com/gpu";

fn claim(takeover: Takeover, started: u64) -> Claim {
    Claim { takeover: takeover.into(), started }
}

fn report(claim: Option<Claim>, resource: &str, phase: Phase) -> Answer {
    let status = ResourceStatus {
        name: resource.to_owned(),
        phase: phase.into(),
        ..ResourceStatus::default()
    };
    Answer::Report(StatusReport { resources: vec![status], claim, ..StatusReport::default() })
}

fn other(name: &str, answer: Answer) -> OtherSocket {
    OtherSocket { path: PathBuf::from(name), answer }
}

/// The standing of a daemon that started at 5 and found `first` in its first search.
fn standing_of(
    takeover: Takeover,
    registration: RegistrationUse,
    first: &[&str],
    others: &[OtherSocket],
) -> Standing {
    let found_first = first.iter().map(PathBuf::from).collect();
    let own = Own { claim: claim(takeover, 5), found_first: &found_first };
    let resource = OwnResource { name: GPU, socket_prefix: "gpu", registration };
    standing(own, resource, others)
}

/// For every set of claims, exactly one daemon outranks all others.
#[test]
fn exactly_one_daemon_outranks_all_others() {
    let takeovers = [Takeover::Wait, Takeover::Replace];
    let all: Vec<Claim> =
        takeovers.iter().flat_map(|t| (1..=3).map(|started| claim(*t, started))).collect();
    for chosen in 1..1_u32 << all.len() {
        let picked = |n: &usize| chosen & 1 << n != 0;
        let claims: Vec<Claim> = (0..all.len()).filter(picked).map(|n| all[n]).collect();
        let first = |c: &&Claim| claims.iter().all(|other| other == *c || c.outranks(other));
        assert_eq!(claims.iter().filter(first).count(), 1, "{claims:?}");
        for (a, b) in claims.iter().flat_map(|a| claims.iter().map(move |b| (a, b))) {
            assert!(a == b || a.outranks(b) != b.outranks(a), "{a:?} {b:?}");
        }
    }
}

#[test]
fn the_first_daemon_serves_unless_a_later_one_replaces() {
    use RegistrationUse::{Registered, Unregistered};
    use Takeover::{Replace, Wait};
    let among = |own, takeover, started| {
        let other = other("/gpu-1.sock", report(Some(claim(takeover, started)), GPU, Phase::Ready));
        let standings = [Unregistered, Registered]
            .map(|used| standing_of(own, used, &[], std::slice::from_ref(&other)));
        assert_eq!(standings[0], standings[1]);
        standings[0].clone()
    };
    let (outranked, contested) =
        (Standing::Outranked("/gpu-1.sock".into()), Standing::Contested("/gpu-1.sock".into()));
    assert_eq!(among(Wait, Wait, 1), outranked);
    assert_eq!(among(Wait, Wait, 9), contested);
    assert_eq!(among(Wait, Replace, 1), outranked);
    assert_eq!(among(Wait, Replace, 9), outranked);
    assert_eq!(among(Replace, Wait, 9), contested);
    assert_eq!(among(Replace, Replace, 1), contested);
    assert_eq!(among(Replace, Replace, 9), outranked);
}

#[test]
fn a_daemon_that_waits_disturbs_nobody() {
    for (phase, expected) in [
        (Phase::Starting, None),
        (Phase::WaitingForOtherDaemon, None),
        (Phase::WaitingForKubelet, Some("/gpu-9.sock")),
        (Phase::Registered, Some("/gpu-9.sock")),
        (Phase::Ready, Some("/gpu-9.sock")),
    ] {
        let later = other("/gpu-9.sock", report(Some(claim(Takeover::Wait, 9)), GPU, phase));
        let found = standing_of(Takeover::Wait, RegistrationUse::Registered, &[], &[later]);
        let expected = expected.map_or(Standing::Alone, |path| Standing::Contested(path.into()));
        assert_eq!(found, expected, "{phase:?}");
    }
}

#[test]
fn daemons_with_other_resources_do_not_matter() {
    let others = [
        other("/gpu-1.sock", report(Some(claim(Takeover::Replace, 9)), "a/b", Phase::Ready)),
        other("/gpu-2.sock", Answer::Report(StatusReport::default())),
        other("/cpu-1.sock", Answer::UnknownCall),
        other("/cpu-2.sock", Answer::Nothing),
    ];
    let found = standing_of(Takeover::Wait, RegistrationUse::Unregistered, &[], &others);
    assert_eq!(found, Standing::Alone);
}

/// Plugins of other makers, earlier versions, and daemons that hang.
#[test]
fn a_process_without_a_claim_gives_nothing_up() {
    for path in ["/gpu-1.sock", "/gpu.sock"] {
        gives_nothing_up(path);
    }
}

fn gives_nothing_up(path: &str) {
    use RegistrationUse::{Registered, Unregistered};
    use Takeover::{Replace, Wait};
    let (outranked, contested) =
        (Standing::Outranked(path.into()), Standing::Contested(path.into()));
    let earlier_version = report(None, GPU, Phase::Ready);
    for answer in [earlier_version, Answer::UnknownCall, Answer::Nothing] {
        let contested = match answer {
            Answer::Nothing => Standing::Alone,
            _ => contested.clone(),
        };
        let others = [other(path, answer)];
        let found = |own, used, first: &[&str]| standing_of(own, used, first, &others);
        assert_eq!(found(Wait, Unregistered, &[path]), outranked);
        assert_eq!(found(Wait, Unregistered, &[]), outranked);
        assert_eq!(found(Wait, Registered, &[]), contested);
        assert_eq!(found(Replace, Unregistered, &[path]), Standing::Alone);
        assert_eq!(found(Replace, Registered, &[path]), Standing::Alone);
        assert_eq!(found(Replace, Registered, &[]), contested);
    }
}

#[test]
fn precedence_of_any_other_daemon_counts_first() {
    let others = [
        other("/gpu-9.sock", report(Some(claim(Takeover::Wait, 9)), GPU, Phase::Ready)),
        other("/gpu-1.sock", report(Some(claim(Takeover::Wait, 1)), GPU, Phase::Starting)),
    ];
    let found = standing_of(Takeover::Wait, RegistrationUse::Registered, &[], &others);
    assert_eq!(found, Standing::Outranked("/gpu-1.sock".into()));
}

#[test]
fn a_busy_daemon_keeps_its_last_answer() {
    let known = other("/gpu-1.sock", report(None, GPU, Phase::WaitingForOtherDaemon));
    let silent = |name| other(name, Answer::Nothing);
    let merged = with_earlier_answers(
        vec![silent("/gpu-1.sock"), silent("/gpu-2.sock")],
        std::slice::from_ref(&known),
    );
    assert_eq!(merged, [known.clone(), silent("/gpu-2.sock")]);
    let replaced = other("/gpu-1.sock", Answer::UnknownCall);
    assert_eq!(with_earlier_answers(vec![replaced.clone()], &[known]), [replaced]);
}
