//! Operations of the cloud, one for each object of a step: begun, looked at until they are over, and begun anew where they have failed.
//!
//! How far each has come is in the handler's notes, so a host that is restarted goes on where the other was. Each attempt has an
//! idempotency key of its own, made of the run: an attempt that is repeated because its answer was lost is the same to the cloud, one
//! after a failure is another.

use std::collections::BTreeMap;

use configurator_sdk::{HandlerError, Input, Output};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::cloud::Cloud;
use crate::plan::Plan;

/// What is to be done for one object.
#[derive(Debug)]
pub struct Job {
    /// The object. It names the request.
    pub object: String,
    /// What is asked for.
    pub path: String,
    /// With what.
    pub body: Value,
}

/// What a step notes.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct Notes {
    /// Of the step that makes the plan.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plan: Option<Plan>,
    /// How far each object has come.
    #[serde(default)]
    objects: BTreeMap<String, Stage>,
}

/// How far an object has come.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
enum Stage {
    /// It is to be asked for, after so many failures.
    Asked(u32),
    /// The cloud is at it.
    Running(Running),
    /// It has come to this.
    Done(Value),
}

#[derive(Debug, Clone, Serialize, Deserialize)]
struct Running {
    operation: String,
    failures: u32,
    percent: u8,
}

/// What the cloud answers to what is not over at once.
#[derive(Deserialize)]
struct Begun {
    operation: Option<String>,
}

/// What the cloud says of an operation.
#[derive(Deserialize)]
struct Looked {
    state: String,
    #[serde(default)]
    percent: u8,
    #[serde(default)]
    result: Value,
    #[serde(default)]
    code: String,
    #[serde(default)]
    message: String,
}

/// What became of a step.
pub enum Carried {
    /// It is not over, or has failed; this goes on.
    NotYet(Box<Output>),
    /// It is over. The output says so to people.
    Done {
        /// What each object has come to.
        results: BTreeMap<String, Value>,
        /// That of the step.
        output: Box<Output>,
    },
}

impl Notes {
    /// Those of the entry before; empty on the first.
    ///
    /// # Errors
    /// Fatal, when they are of another form.
    pub fn of(input: &Input) -> Result<Notes, HandlerError> {
        Ok(input.notes()?.unwrap_or_default())
    }
}

/// Has these jobs done.
///
/// # Errors
/// Fatal, when the cloud does not accept the key, or answers what it never should.
pub fn carry_out(
    cloud: &Cloud<'_>,
    mut notes: Notes,
    jobs: &[Job],
) -> Result<Carried, HandlerError> {
    let mut failure = None;
    let mut delay = None;
    for job in jobs {
        let stage = notes
            .objects
            .entry(job.object.clone())
            .or_insert(Stage::Asked(0));
        match cloud.answer(&job.object)? {
            None => {}
            Some(Err(busy)) => delay = delay.max(Some(busy)),
            Some(Ok(answer)) => {
                let next = match stage.clone() {
                    Stage::Asked(failures) => answer.read().map(|body| begun(body, failures)),
                    Stage::Running(running) => {
                        answer.read().and_then(|found| looked(running, found))
                    }
                    done @ Stage::Done(_) => Ok(done),
                };
                *stage = next.unwrap_or_else(|error| {
                    let failures = stage.failures().saturating_add(1);
                    failure.get_or_insert(error);
                    Stage::Asked(failures)
                });
            }
        }
    }
    let stages: Vec<&Stage> = jobs
        .iter()
        .filter_map(|job| notes.objects.get(&job.object))
        .collect();
    let done = |stage: &&&Stage| matches!(stage, Stage::Done(_));
    let (done, all) = (stages.iter().filter(done).count(), stages.len());
    let percents: usize = stages.iter().map(|stage| stage.percent()).sum();
    let percent = u8::try_from(percents / all.max(1)).unwrap_or(100);
    let said = |output: Output| {
        let objects = jobs.iter().zip(&stages);
        let objects: BTreeMap<_, _> = objects
            .map(|(job, stage)| (&job.object, stage.words()))
            .collect();
        let data = serde_json::to_string(&notes)?;
        Ok::<_, HandlerError>(
            output
                .progress(percent, format!("{done} of {all}"))
                .details(json!({ "objects": objects }))
                .data(data),
        )
    };
    if done == all {
        let results = jobs
            .iter()
            .zip(&stages)
            .filter_map(|(job, stage)| match stage {
                Stage::Done(result) => Some((job.object.clone(), result.clone())),
                _ => None,
            });
        return Ok(Carried::Done {
            results: results.collect(),
            output: said(Output::new())?
                .progress(100, format!("{done} of {all}"))
                .into(),
        });
    }
    if let Some(failure) = failure {
        return Ok(Carried::NotYet(said(Output::new().failed(failure))?.into()));
    }
    if let Some(ask) = cloud.fetch_key() {
        return Ok(Carried::NotYet(said(ask)?.into()));
    }
    let mut output = cloud.output();
    let mut is_begun = false;
    for (job, stage) in jobs.iter().zip(&stages) {
        match stage {
            Stage::Asked(failures) => {
                let context = &cloud.input.context;
                let key = format!(
                    "{}/{}/{}/{failures}",
                    context.run_id, context.node, job.object
                );
                output.push(cloud.post(job.object.as_str(), &job.path, &job.body, key)?);
                is_begun = true;
            }
            Stage::Running(running) => {
                let path = ["/operations/", &running.operation].concat();
                output.push(cloud.get(job.object.as_str(), &path));
            }
            Stage::Done(_) => {}
        }
    }
    output = match delay {
        Some(delay) => output.again_after(delay.max(cloud.poll())),
        None if is_begun => output.again(),
        None => output.again_after(cloud.poll()),
    };
    Ok(Carried::NotYet(said(output)?.into()))
}

/// A step that has these jobs done, after which each instance is in this state.
///
/// # Errors
/// As [`carry_out`].
pub fn step(
    input: &Input,
    plan: &Plan,
    jobs: Vec<Job>,
    state: &str,
) -> Result<Output, HandlerError> {
    match carry_out(&Cloud::of(input)?, Notes::of(input)?, &jobs)? {
        Carried::NotYet(output) => Ok(*output),
        Carried::Done { output, .. } => Ok(output.status(plan.reached(state))),
    }
}

fn begun(Begun { operation }: Begun, failures: u32) -> Stage {
    match operation {
        Some(operation) => Stage::Running(Running {
            operation,
            failures,
            percent: 0,
        }),
        None => Stage::Done(Value::Null),
    }
}

fn looked(running: Running, found: Looked) -> Result<Stage, HandlerError> {
    match found.state.as_str() {
        "SUCCEEDED" => Ok(Stage::Done(found.result)),
        "FAILED" => Err(HandlerError::retry(found.message).code(found.code)),
        _ => Ok(Stage::Running(Running {
            percent: found.percent,
            ..running
        })),
    }
}

impl Stage {
    fn failures(&self) -> u32 {
        match self {
            Stage::Asked(failures) => *failures,
            Stage::Running(running) => running.failures,
            Stage::Done(_) => 0,
        }
    }

    fn percent(&self) -> usize {
        match self {
            Stage::Asked(_) => 0,
            Stage::Running(running) => usize::from(running.percent.min(100)),
            Stage::Done(_) => 100,
        }
    }

    fn words(&self) -> String {
        match self {
            Stage::Asked(0) => "asked for".to_owned(),
            Stage::Asked(failures) => format!("asked for again, after {failures} failures"),
            Stage::Running(running) => format!("{} %", running.percent),
            Stage::Done(_) => "done".to_owned(),
        }
    }
}
