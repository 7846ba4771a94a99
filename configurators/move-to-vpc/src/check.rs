//! Checks: questions to the cloud and a judgement of the answers, which changes nothing.

use configurator_sdk::{HandlerError, Input, Output};

use crate::cloud::{Answer, Cloud, Consulted};
use crate::resource::Spec;

/// Asks the questions, and is done when nothing is wrong with the answers.
///
/// # Errors
/// Fatal, with what is wrong. What the cloud refuses.
pub fn check<const N: usize>(
    input: &Input,
    questions: impl Fn(&Spec) -> [String; N],
    wrong: impl Fn(&Spec, [Answer<'_>; N]) -> Result<Option<String>, HandlerError>,
) -> Result<Output, HandlerError> {
    let cloud = Cloud::of(input)?;
    let answers = match cloud.consult(&questions(&cloud.spec))? {
        Consulted::NotYet(output) => return Ok(*output),
        Consulted::Answers(answers) => answers,
    };
    match wrong(&cloud.spec, answers)? {
        Some(wrong) => Err(HandlerError::fatal(wrong)),
        None => Ok(Output::new()),
    }
}
