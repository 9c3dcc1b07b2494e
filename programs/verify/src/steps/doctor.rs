//! `doctor`: every check of the doctor.

use ::doctor::{Check, Inspection, Request, Verdict};
use cli::Failure;

use crate::step::{Finding, Measurement, Outcome, Step};
use crate::stop::Stop;

/// Runs the checks. They run programs that may hang, so they have a thread of their own.
pub(crate) async fn run(
    request: &Request,
    stop: &Stop,
) -> Result<(Finding, Option<Inspection>), Failure> {
    let request = request.clone();
    match stop.or_on_thread(move || ::doctor::inspect(&request)).await {
        Ok(inspection) => {
            let inspection = inspection?;
            Ok((finding(&inspection.checks), Some(inspection)))
        }
        Err(reason) => Ok((Finding::unfinished(Step::Doctor, reason), None)),
    }
}

fn finding(checks: &[Check]) -> Finding {
    let count = |verdict| checks.iter().filter(|check| check.verdict == verdict).count();
    let (problems, warnings) = (count(Verdict::Problem), count(Verdict::Warning));
    let (outcome, what) = match (problems, warnings) {
        (0, 0) => (Outcome::Ok, "no problem found"),
        (0, _) => (Outcome::Warning, "warnings found"),
        _ => (Outcome::Failed, "problems found"),
    };
    let bad = checks.iter().filter(|check| check.verdict >= Verdict::Warning);
    Finding::new(Step::Doctor, outcome, what)
        .measured([
            Measurement::count("problems", problems),
            Measurement::count("warnings", warnings),
            Measurement::count("ok", count(Verdict::Ok)),
            Measurement::count("notChecked", count(Verdict::NotChecked)),
        ])
        .detail(bad.map(line))
}

fn line(check: &Check) -> String {
    let object = check.object.as_ref().map(|object| format!("{object}: ")).unwrap_or_default();
    let (verdict, subject) = (check.verdict.label(), check.subject.name());
    format!("{verdict}: {subject}: {object}{}", check.what)
}
