//! Questions that come while a request is under way go together in the next one.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::oneshot;

/// What may share a request with others.
pub trait Question: Clone {
    /// What is in a request already.
    type Load: Default;

    /// Whether there is room for it beside these.
    fn fits(&self, load: &Self::Load) -> bool;

    /// Takes its room.
    fn add_to(&self, load: &mut Self::Load);
}

/// Gathers questions. One who asks sends the request for all of them; when nobody else asks, at once and alone.
///
/// Nobody joins a request that was sent already, so an answer is never older than its question. When so much has
/// gathered that the next question has no room, it is sent without waiting. Whoever sends may be dropped meanwhile: then
/// another of them sends.
pub struct Gather<Q: Question, A> {
    state: Arc<Mutex<State<Q, A>>>,
}

struct State<Q: Question, A> {
    under_way: usize,
    gathered: Batch<Q, A>,
    load: Q::Load,
}

/// Questions, and whom to tell about each. Whoever sends them needs not be told.
struct Batch<Q: Question, A> {
    questions: Vec<Q>,
    waiting: Vec<Option<oneshot::Sender<Turn<Q, A>>>>,
}

/// What one who waits hears.
enum Turn<Q: Question, A> {
    Answered(A),
    Sends(Sending<Q, A>),
}

enum Entered<Q: Question, A> {
    Sends(Sending<Q, A>),
    Waits(oneshot::Receiver<Turn<Q, A>>),
}

/// Whoever holds this sends a request; when it is dropped, the next is.
struct Sending<Q: Question, A> {
    state: Arc<Mutex<State<Q, A>>>,
    batch: Batch<Q, A>,
}

impl<Q: Question, A> Gather<Q, A> {
    /// Nothing is under way.
    pub fn new() -> Self {
        let state = State {
            under_way: 0,
            gathered: Batch::default(),
            load: Q::Load::default(),
        };
        Self {
            state: Arc::new(Mutex::new(state)),
        }
    }

    /// Asks. `send` gives one answer for each of the questions, in their order; `None` when it gave none for this.
    pub async fn ask(&self, question: &Q, send: impl AsyncFnOnce(&[Q]) -> Vec<A>) -> Option<A> {
        let mut sending = loop {
            match self.enter(question) {
                Entered::Sends(sending) => break sending,
                Entered::Waits(turn) => match turn.await {
                    Ok(Turn::Answered(answer)) => return Some(answer),
                    Ok(Turn::Sends(sending)) => break sending,
                    // Whoever was to send has gone.
                    Err(_) => {}
                },
            }
        };
        sending.batch.forget_gone();
        let answers = send(&sending.batch.questions).await;
        let mut own = None;
        for (waiting, answer) in sending.batch.waiting.drain(..).zip(answers) {
            match waiting {
                None => own = Some(answer),
                // It may have gone.
                Some(waiting) => drop(waiting.send(Turn::Answered(answer))),
            }
        }
        own
    }

    fn enter(&self, question: &Q) -> Entered<Q, A> {
        let mut state = lock(&self.state);
        if state.under_way == 0 {
            state.under_way = 1;
            return Entered::Sends(Sending {
                state: self.state.clone(),
                batch: Batch {
                    questions: vec![question.clone()],
                    waiting: vec![None],
                },
            });
        }
        let is_full = !state.gathered.questions.is_empty() && !question.fits(&state.load);
        let full = is_full.then(|| {
            state.under_way += 1;
            state.take_gathered()
        });
        let (waiting, turn) = oneshot::channel();
        question.add_to(&mut state.load);
        state.gathered.questions.push(question.clone());
        state.gathered.waiting.push(Some(waiting));
        drop(state);
        if let Some(batch) = full {
            Sending::appoint(self.state.clone(), batch);
        }
        Entered::Waits(turn)
    }
}

impl<Q: Question, A> State<Q, A> {
    fn take_gathered(&mut self) -> Batch<Q, A> {
        self.load = Q::Load::default();
        std::mem::take(&mut self.gathered)
    }
}

impl<Q: Question, A> Batch<Q, A> {
    /// Nobody waits for the answers to these any more.
    fn forget_gone(&mut self) {
        let waiting = std::mem::take(&mut self.waiting);
        let questions = std::mem::take(&mut self.questions);
        let is_there = |waiting: &Option<oneshot::Sender<_>>| {
            waiting.as_ref().is_none_or(|waiting| !waiting.is_closed())
        };
        (self.questions, self.waiting) = questions
            .into_iter()
            .zip(waiting)
            .filter(|(_, waiting)| is_there(waiting))
            .unzip();
    }
}

impl<Q: Question, A> Sending<Q, A> {
    /// The first that is still there sends the batch, which counts as under way.
    fn appoint(state: Arc<Mutex<State<Q, A>>>, batch: Batch<Q, A>) {
        let mut sending = Self { state, batch };
        while let Some(first) = sending.batch.waiting.first_mut().and_then(Option::take) {
            let Err(Turn::Sends(back)) = first.send(Turn::Sends(sending)) else {
                return;
            };
            sending = back;
            sending.batch.waiting.remove(0);
            sending.batch.questions.remove(0);
        }
    }
}

impl<Q: Question, A> Drop for Sending<Q, A> {
    fn drop(&mut self) {
        let mut state = lock(&self.state);
        state.under_way -= 1;
        if state.under_way > 0 || state.gathered.questions.is_empty() {
            return;
        }
        state.under_way = 1;
        let batch = state.take_gathered();
        drop(state);
        Self::appoint(self.state.clone(), batch);
    }
}

impl<Q: Question, A> Default for Batch<Q, A> {
    fn default() -> Self {
        Self {
            questions: Vec::new(),
            waiting: Vec::new(),
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use futures::FutureExt as _;
    use futures::future::{BoxFuture, join_all};
    use tokio::sync::Semaphore;

    use super::*;

    /// Three have room, and even ones do not go with odd ones.
    impl Question for u32 {
        type Load = Vec<u32>;

        fn fits(&self, load: &Vec<u32>) -> bool {
            load.len() < 3 && load.iter().all(|other| other % 2 == self % 2)
        }

        fn add_to(&self, load: &mut Vec<u32>) {
            load.push(*self);
        }
    }

    /// Answers with the questions that were in one request, when it is let through.
    struct Server {
        gate: Semaphore,
        gather: Gather<u32, Vec<u32>>,
    }

    impl Server {
        fn new(permits: usize) -> Self {
            Self {
                gate: Semaphore::new(permits),
                gather: Gather::new(),
            }
        }

        async fn ask(&self, question: u32) -> Vec<u32> {
            let send = async |questions: &[u32]| {
                self.gate.acquire().await.unwrap().forget();
                vec![questions.to_vec(); questions.len()]
            };
            self.gather.ask(&question, send).await.unwrap()
        }

        /// Have asked, and have no answer yet.
        async fn waiting<const N: usize>(
            &self,
            questions: [u32; N],
        ) -> [BoxFuture<'_, Vec<u32>>; N] {
            let mut asking = questions.map(|question| self.ask(question).boxed());
            for asking in &mut asking {
                assert!(futures::poll!(asking).is_pending());
            }
            asking
        }

        fn is_idle(&self) -> bool {
            let state = lock(&self.gather.state);
            state.under_way == 0 && state.gathered.questions.is_empty()
        }
    }

    #[tokio::test]
    async fn what_comes_meanwhile_goes_together() {
        let server = Server::new(0);
        let mut asking = Box::pin(join_all([0, 2, 4].map(|question| server.ask(question))));
        assert!(futures::poll!(&mut asking).is_pending());
        server.gate.add_permits(2);
        assert_eq!(asking.await, [vec![0], vec![2, 4], vec![2, 4]]);
        assert!(server.is_idle());
    }

    #[tokio::test]
    async fn what_has_no_room_is_not_waited_for() {
        let server = Server::new(0);
        let mut asking = Box::pin(join_all((0..6).map(|n| server.ask(2 * n))));
        assert!(futures::poll!(&mut asking).is_pending());
        // The second is under way although the first is as well.
        assert_eq!(lock(&server.gather.state).under_way, 2);
        server.gate.add_permits(3);
        let (first, second, third) = (vec![0], vec![2, 4, 6], vec![8, 10]);
        let expected = [&first, &second, &second, &second, &third, &third];
        assert_eq!(asking.await.iter().collect::<Vec<_>>(), expected);
        assert!(server.is_idle());
    }

    #[tokio::test]
    async fn what_does_not_go_together_goes_alone() {
        let server = Server::new(3);
        let answers = join_all([0, 2, 3].map(|question| server.ask(question))).await;
        assert_eq!(answers, [vec![0], vec![2], vec![3]]);
        assert!(server.is_idle());
    }

    #[tokio::test]
    async fn when_the_one_that_sends_is_dropped_another_sends() {
        let server = Server::new(0);
        let [first, second, third] = server.waiting([0, 2, 4]).await;
        drop(first);
        // The second has been told to send, and does not live to do so.
        drop(second);
        server.gate.add_permits(1);
        assert_eq!(third.await, [4]);
        assert!(server.is_idle());
    }

    #[tokio::test]
    async fn what_nobody_waits_for_is_not_sent() {
        let server = Server::new(0);
        let [first, second, third] = server.waiting([0, 2, 4]).await;
        drop(third);
        server.gate.add_permits(2);
        assert_eq!(first.await, [0]);
        assert_eq!(second.await, [2]);
        assert!(server.is_idle());
    }

    #[tokio::test]
    async fn one_that_has_gone_is_not_asked_to_send() {
        let server = Server::new(0);
        let [first, second, third] = server.waiting([0, 2, 4]).await;
        drop(second);
        server.gate.add_permits(2);
        assert_eq!(first.await, [0]);
        assert_eq!(third.await, [4]);
        assert!(server.is_idle());
    }
}
