//! Talking with the cloud: over several entries of a leaf, since a handler only asks, and is told when it is entered again.

use std::time::Duration;

use configurator_sdk::http::Http;
use configurator_sdk::secretstore::Secret;
use configurator_sdk::{HandlerError, HttpResponse, Input, Output, Request};
use serde::{Deserialize, Serialize};

use crate::resource::{MoveToVpc, Spec};

/// The request for the access key. It goes with every other, since an entry gets only what the entry before has asked for.
const KEY: &str = "key";
/// The wait where the cloud is too busy and does not say for how long.
const BUSY: Duration = Duration::from_secs(1);

/// What a leaf needs to talk with the cloud.
#[derive(Debug)]
pub struct Cloud<'a> {
    /// The call.
    pub input: &'a Input,
    /// What is wanted.
    pub spec: Spec,
    /// What the Configurator says.
    pub parameters: Parameters,
    /// The other half of the access key, once it is here.
    key: Option<String>,
}

/// `spec.parameters` of the Configurator.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Parameters {
    /// Where the cloud is, without a slash at the end.
    pub endpoint: String,
    /// How often an operation is looked at.
    pub poll_milliseconds: u64,
    /// How many network interfaces `raiseQuota` asks for.
    #[serde(default)]
    pub interface_quota: u32,
}

/// What came of questions.
pub enum Consulted<'a, const N: usize> {
    /// The answers, in the order of the questions.
    Answers([Answer<'a>; N]),
    /// They are not here yet; this asks.
    NotYet(Box<Output>),
}

/// An answer of the cloud that is none of being busy.
#[derive(Debug, Clone, Copy)]
pub struct Answer<'a> {
    response: &'a HttpResponse,
}

/// Why the cloud does not do something.
#[derive(Debug, Deserialize)]
struct Refusal {
    #[serde(default)]
    code: String,
    #[serde(default)]
    message: String,
}

impl<'a> Cloud<'a> {
    /// The cloud, for this call.
    ///
    /// # Errors
    /// Fatal, when the object or the parameters lack a field, or the secret is no text. When the key could not be read, which a retry may
    /// cure.
    pub fn of(input: &'a Input) -> Result<Cloud<'a>, HandlerError> {
        #[derive(Deserialize)]
        struct Stored {
            value: String,
        }
        let key = input.answer(KEY).map(|answer| answer.object::<Stored>());
        Ok(Cloud {
            input,
            spec: MoveToVpc::of(input)?.spec,
            parameters: input.parameters()?,
            key: key.transpose()?.map(|stored| stored.value),
        })
    }

    /// How often an operation is looked at.
    pub fn poll(&self) -> Duration {
        Duration::from_millis(self.parameters.poll_milliseconds)
    }

    /// Asks for the key, where it is not here yet.
    pub fn fetch_key(&self) -> Option<Output> {
        let ask = || Output::new().request(self.key_request()).again();
        self.key.is_none().then(ask)
    }

    /// An output that has the key ready for the entry that comes.
    pub fn output(&self) -> Output {
        Output::new().request(self.key_request())
    }

    /// Reads something.
    pub fn get(&self, name: impl Into<String>, path: &str) -> Request {
        self.signed(name, Http::get(self.url(path)))
    }

    /// Changes something; under a key, so that the cloud does it once however often it is asked.
    ///
    /// # Errors
    /// Fatal, when the body has no form in JSON.
    pub fn post<T: Serialize>(
        &self,
        name: impl Into<String>,
        path: &str,
        body: &T,
        idempotency_key: String,
    ) -> Result<Request, HandlerError> {
        let post = Http::post(self.url(path))
            .header("content-type", "application/json")
            .header("idempotency-key", idempotency_key)
            .body(serde_json::to_vec(body)?);
        Ok(self.signed(name, post))
    }

    /// Asks questions, and returns the answers in the entry in which all are here.
    ///
    /// # Errors
    /// Fatal, when the cloud does not accept the key.
    pub fn consult<const N: usize>(
        &self,
        questions: &[String; N],
    ) -> Result<Consulted<'a, N>, HandlerError> {
        if let Some(ask) = self.fetch_key() {
            return Ok(Consulted::NotYet(ask.into()));
        }
        let ask = || {
            let questions = questions.iter().enumerate();
            let questions = questions.map(|(number, path)| self.get(question(number), path));
            self.output().with_requests(questions)
        };
        let mut answers = Vec::new();
        for number in 0..N {
            match self.answer(&question(number))? {
                None => return Ok(Consulted::NotYet(ask().again().into())),
                Some(Err(busy)) => return Ok(Consulted::NotYet(ask().again_after(busy).into())),
                Some(Ok(answer)) => answers.push(answer),
            }
        }
        let answers = answers.try_into();
        answers
            .map(Consulted::Answers)
            .map_err(|_| HandlerError::fatal("answers are missing"))
    }

    /// The answer to the request of this name, if the entry before has made it; or for how long the cloud is busy.
    ///
    /// # Errors
    /// Fatal, when the cloud does not accept the key.
    pub fn answer(&self, name: &str) -> Result<Option<Result<Answer<'a>, Duration>>, HandlerError> {
        let Some(result) = self.input.answer(name) else {
            return Ok(None);
        };
        let response = result.response()?;
        let answer = Answer { response };
        Ok(Some(match response.status {
            401 | 403 => {
                let refusal = answer.refusal();
                let message = format!(
                    "the cloud does not accept the access key: {}",
                    refusal.message
                );
                return Err(HandlerError::fatal(message).code("AuthFailure"));
            }
            429 | 500.. => {
                let seconds = response.header("retry-after");
                let seconds = seconds.and_then(|seconds| seconds.parse().ok());
                Err(seconds.map_or(BUSY, Duration::from_secs))
            }
            _ => Ok(answer),
        }))
    }

    fn key_request(&self) -> Request {
        Request::new(KEY, Secret::new(self.spec.secret_key.as_str()).get())
    }

    fn url(&self, path: &str) -> String {
        [&self.parameters.endpoint, path].concat()
    }

    fn signed(&self, name: impl Into<String>, http: Http) -> Request {
        let key = self.key.as_deref().unwrap_or_default();
        let http = http
            .header("x-secret-id", self.spec.secret_id.as_str())
            .header("x-secret-key", key);
        Request::new(name, http)
    }
}

fn question(number: usize) -> String {
    format!("question/{number}")
}

impl<'a> Answer<'a> {
    /// What was asked for.
    ///
    /// # Errors
    /// The cloud's refusal, with its code; fatal, when a repetition would be refused as well, or the body is not a `T`.
    pub fn read<T: Deserialize<'a>>(&self) -> Result<T, HandlerError> {
        match self.response.status {
            200..300 => self.response.json(),
            status => {
                let Refusal { code, message } = self.refusal();
                let error = match status {
                    409 => HandlerError::retry(message),
                    _ => HandlerError::fatal(message),
                };
                Err(error.code(code))
            }
        }
    }

    /// What was asked for; nothing where the cloud has no such thing.
    ///
    /// # Errors
    /// As [`read`](Self::read).
    pub fn found<T: Deserialize<'a>>(&self) -> Result<Option<T>, HandlerError> {
        match self.response.status {
            404 => Ok(None),
            _ => self.read().map(Some),
        }
    }

    fn refusal(&self) -> Refusal {
        self.response.json().unwrap_or_else(|_| Refusal {
            code: String::new(),
            message: format!("the cloud answered with {}", self.response.status),
        })
    }
}
