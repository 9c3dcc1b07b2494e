use super::*;

fn devices(luids: &[i64]) -> Adapters {
    Adapters::Devices { luids: luids.to_vec(), without_luid: 0 }
}

fn absent() -> Adapters {
    Adapters::Absent("x.dll not found".to_owned())
}

fn failed() -> Adapters {
    Adapters::Failed("no".to_owned())
}

fn stopped(why: &str) -> Vec<Listed> {
    one(Adapters::Stopped(why.to_owned()))
}

fn run(lists: &[(&str, Adapters)]) -> Vec<Listed> {
    lists
        .iter()
        .map(|(call, adapters)| Listed { call: (*call).into(), adapters: adapters.clone() })
        .collect()
}

/// The verdict on a call of Vulkan in a container that has device 1.
fn verdict(before: Adapters, after: Adapters) -> Verdict {
    let mut report = Report::new(&[1]);
    report.add(Api::Vulkan, &run(&[("A", before)]), &run(&[("A", after)]));
    report.apis[0].verdict
}

#[test]
fn a_filtered_list_has_the_allocated_adapters_and_no_other() {
    for (before, after, expected, case) in [
        (&[1, 2][..], &[1][..], Verdict::Ok, "the others are hidden"),
        (&[1, 2], &[1, 2], Verdict::Different, "nothing hidden"),
        (&[1, 2], &[], Verdict::Different, "too much hidden"),
        (&[2], &[], Verdict::Ok, "an API that does not list the device"),
        (&[], &[2], Verdict::Different, "another device appeared"),
    ] {
        assert_eq!(verdict(devices(before), devices(after)), expected, "{case}");
    }
}

#[test]
fn an_api_that_does_not_work_without_the_filter_is_no_difference() {
    assert_eq!(verdict(absent(), absent()), Verdict::Absent);
    assert_eq!(verdict(failed(), failed()), Verdict::Failed);
    assert_eq!(verdict(failed(), devices(&[1])), Verdict::Ok);
    assert_eq!(verdict(failed(), devices(&[2])), Verdict::Different);
    for refusal in [absent(), failed()] {
        assert_eq!(verdict(devices(&[1, 2]), refusal.clone()), Verdict::Different);
        assert_eq!(verdict(devices(&[2]), refusal), Verdict::Ok, "refuses only hidden devices");
    }
}

/// The verdict on the default of Direct3D in a container that has device 1, if DXGI lists `dxgi`.
fn verdict_on_default(dxgi: &[i64], before: Adapters, after: Adapters) -> Verdict {
    let mut report = Report::new(&[1]);
    report.add(Api::Dxgi, &run(&[("A", devices(dxgi))]), &run(&[("A", devices(&[]))]));
    report.add(Api::D3d12, &run(&[("B", before)]), &run(&[("B", after)]));
    report.apis[1].verdict
}

#[test]
fn the_default_of_direct3d_is_a_device_of_the_container() {
    let other = || devices(&[2]);
    assert_eq!(verdict_on_default(&[2, 1], other(), devices(&[1])), Verdict::Ok);
    assert_eq!(verdict_on_default(&[2, 1], other(), other()), Verdict::Different);
    assert_eq!(
        verdict_on_default(&[2, 1], other(), devices(&[])),
        Verdict::Different,
        "only software is left"
    );
    assert_eq!(verdict_on_default(&[2, 1], other(), failed()), Verdict::Different);
    assert_eq!(
        verdict_on_default(&[2], other(), failed()),
        Verdict::Ok,
        "the device is compute-only"
    );
    assert_eq!(verdict_on_default(&[2, 1], failed(), failed()), Verdict::Failed);
}

#[test]
fn a_process_that_hangs_only_with_the_filter_is_a_difference() {
    let hangs = || stopped("no result within 60 s; the process was ended");
    let lists = || run(&[("A", devices(&[2])), ("B", absent())]);
    let verdicts = |before: &[Listed], after: &[Listed]| {
        let mut report = Report::new(&[1]);
        report.add(Api::Opencl, before, after);
        let verdicts: Vec<_> = report.apis.iter().map(|compared| compared.verdict).collect();
        verdicts
    };
    assert_eq!(verdicts(&lists(), &hangs()), [Verdict::Different; 2]);
    assert_eq!(verdicts(&hangs(), &lists())[1], Verdict::Absent);
    assert_eq!(verdicts(&hangs(), &hangs()), [Verdict::Failed]);
}

#[test]
fn a_first_step_that_fails_stands_for_every_call() {
    let lists = run(&[("A", devices(&[1])), ("B", devices(&[]))]);
    let fails = run(&[("CreateDXGIFactory1", failed())]);
    let mut report = Report::new(&[1]);
    report.add(Api::Dxgi, &lists, &fails);
    let found: Vec<_> = report.apis.iter().map(|row| (&*row.call, row.verdict)).collect();
    assert_eq!(found, [("A", Verdict::Different), ("B", Verdict::Ok)]);
    let mut report = Report::new(&[1]);
    report.add(Api::Dxgi, &fails, &lists);
    assert!(report.apis.iter().all(|row| row.unfiltered == failed()), "{report:?}");
}

#[test]
fn nothing_is_proven_without_a_list() {
    let mut report = Report::new(&[1]);
    assert_eq!(report.exit_code(), 1);
    report.add(Api::Cuda, &run(&[("A", absent())]), &run(&[("A", absent())]));
    assert_eq!(report.exit_code(), 1);
    report.add(Api::Opencl, &run(&[("A", devices(&[]))]), &run(&[("A", devices(&[]))]));
    assert_eq!(report.exit_code(), 0);
    let different = run(&[("A", devices(&[2]))]);
    report.add(Api::Vulkan, &different, &different);
    assert_eq!(report.exit_code(), 1);
}

#[test]
fn software_adapters_are_not_compared() {
    let mut lists = run(&[("A", devices(&[9, 1, 2])), ("B", failed())]);
    keep(&mut lists, &known(&[1], Some(&[2, 1])));
    assert_eq!(lists, run(&[("A", devices(&[1, 2])), ("B", failed())]));
    assert_eq!(known(&[1], None), [1]);
}

#[test]
fn the_comparison_is_printed_for_people_and_programs() {
    let mut report = Report::new(&[1]);
    let opencl = |luids: &[i64]| Adapters::Devices { luids: luids.to_vec(), without_luid: 1 };
    let before = run(&[("A", devices(&[1, 2])), ("B", absent())]);
    report.add(Api::D3dkmt, &before, &run(&[("A", devices(&[1])), ("B", absent())]));
    report.add(Api::Opencl, &run(&[("C", opencl(&[1]))]), &run(&[("C", opencl(&[]))]));
    report.add(Api::Cuda, &stopped("hangs"), &stopped("hangs"));
    assert_eq!(
        report.text(),
        "allocated: 1\n\
         ok        d3dkmt  A: 1, 2 -> 1\n\
         absent    d3dkmt  B: x.dll not found\n\
         DIFFERENT opencl  C: 1, 1 without LUID -> 1 without LUID\n\
         failed    cuda    every call: failed (hangs)\n\
         the filter does not show exactly the container's devices\n"
    );
    let json = serde_json::to_value(&report).unwrap();
    assert_eq!(json["isAsAllocated"], false);
    let rows = &json["apis"];
    assert_eq!(rows[0]["filtered"]["devices"]["luids"][0], 1);
    assert_eq!(rows[1]["unfiltered"]["absent"], "x.dll not found");
    assert_eq!(rows[2]["filtered"]["devices"]["withoutLuid"], 1);
    assert_eq!(rows[2]["verdict"], "different");
    assert_eq!((&rows[3]["api"], &rows[3]["call"]), (&"cuda".into(), &"every call".into()));
}

#[test]
fn child_processes_count_as_the_apis_do() {
    let lists = |luids: &[i64]| run(&[("A", devices(&[9])), (CALL_OF_CHILDREN, devices(luids))]);
    let check = |unfiltered: &[Listed], filtered: &[Listed]| {
        let mut report = Report::new(&[1]);
        report.add(Api::D3dkmt, &run(&[("A", devices(&[1]))]), &run(&[("A", devices(&[1]))]));
        report.add_child("cmd.exe", unfiltered, filtered);
        (report.apis[1].verdict, report.exit_code())
    };
    assert_eq!(check(&lists(&[1, 2]), &lists(&[1])), (Verdict::Ok, 0));
    assert_eq!(check(&lists(&[1, 2]), &lists(&[1, 2])), (Verdict::Different, 1));
    let refused = stopped("the process ended with 00000001");
    assert_eq!(check(&lists(&[1, 2]), &refused), (Verdict::Different, 1));
    assert_eq!(check(&refused, &refused), (Verdict::Failed, 0), "no such image can run it");
    assert_eq!(check(&one(absent()), &one(absent())), (Verdict::Absent, 0));
    // A 32-bit program has no list.
    assert_eq!(check(&one(devices(&[])), &one(devices(&[]))), (Verdict::Ok, 0));
    assert_eq!(check(&one(devices(&[])), &refused), (Verdict::Different, 1));
}
