//! The error of a handler. `Display` and `std::error::Error` come with the bindings.

use std::time::Duration;

use crate::HandlerError;

impl HandlerError {
    /// An error that may pass: after backoff the run begins again, at the root phase and with the newest object.
    ///
    /// ```
    /// use configurator_sdk::HandlerError;
    /// use std::time::Duration;
    ///
    /// let error = HandlerError::retry("the account has no quota yet").after(Duration::from_secs(30)).code("QUOTA");
    /// assert!(!error.fatal);
    /// assert_eq!(error.retry_after, Some(30_000));
    /// ```
    pub fn retry(message: impl Into<String>) -> HandlerError {
        HandlerError {
            message: message.into(),
            fatal: false,
            retry_after: None,
            code: None,
        }
    }

    /// An error that the same input will always give: the phase fails at once, and the object is given up until it
    /// changes.
    pub fn fatal(message: impl Into<String>) -> HandlerError {
        HandlerError {
            message: message.into(),
            fatal: true,
            retry_after: None,
            code: None,
        }
    }

    /// When to begin again, in place of the configurator's backoff. Whole milliseconds; no use on a fatal error.
    #[must_use]
    pub fn after(mut self, delay: Duration) -> HandlerError {
        self.retry_after = Some(milliseconds(delay));
        self
    }

    /// The code that the Configurator's `errorCodes` may know. Unread in a chain, which has none.
    #[must_use]
    pub fn code(mut self, code: impl Into<String>) -> HandlerError {
        self.code = Some(code.into());
        self
    }
}

/// What does not parse now will not parse on a retry: fatal.
impl From<serde_json::Error> for HandlerError {
    fn from(error: serde_json::Error) -> HandlerError {
        HandlerError::fatal(error.to_string())
    }
}

/// The contract's span of time. Saturates after 584 million years.
pub(crate) fn milliseconds(span: Duration) -> u64 {
    u64::try_from(span.as_millis()).unwrap_or(u64::MAX)
}
