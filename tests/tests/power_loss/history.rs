//! Generated histories: calls that run at the same time on a disk that fails, processes that end, and a power that goes.

use std::cell::Cell;

use configurator_store::Store;
use configurator_store::testing::{Dice, Disk, Fault, Hold};
use futures::future::join_all;

use crate::linear::{Call, Model, is_linearizable};

/// Calls of one history at most: 6 rounds of 4, and the last.
const ROUNDS: u64 = 6;
const AT_ONCE: u64 = 4;
/// Rounds of a history in which one operation of the disk fails.
const ROUNDS_WITH_ONE_FAULT: u64 = 4;

const FAULTS: [Fault; 5] = [
    Fault::Retained,
    Fault::Forgotten,
    Fault::Reverted,
    Fault::Permanent,
    Fault::PowerOff,
];

/// How a call ended.
#[derive(Debug, Clone)]
pub enum Outcome<A> {
    Answer(A),
    /// An error that promises that nothing was done.
    Nothing,
    /// An error that promises nothing.
    Unknown,
}

pub type OperationOf<S> = <<S as Subject>::Model as Model>::Operation;
pub type AnswerOf<S> = <<S as Subject>::Model as Model>::Answer;
pub type CallOf<S> = Call<OperationOf<S>, AnswerOf<S>>;

/// A store that a process has open.
pub trait Subject: Sized {
    type Model: Model;
    /// Somebody who watches the store, also over the end of processes.
    type Witness: Default;

    async fn open(disk: &Disk) -> Result<Self, String>;

    fn store(&self) -> &Store;

    /// An operation; no other has this number.
    fn generate(dice: &mut Dice, number: u64) -> OperationOf<Self>;

    /// The operation that reads everything.
    fn read_all() -> OperationOf<Self>;

    async fn call(&self, operation: &OperationOf<Self>) -> Outcome<AnswerOf<Self>>;

    /// The witness takes in what there is to be seen.
    async fn watch(&self, witness: &mut Self::Witness);

    /// The process has ended.
    fn disconnect(_witness: &mut Self::Witness) {}

    /// Whether the witness has seen all that was done.
    fn verify(_witness: &Self::Witness, _calls: &[CallOf<Self>]) -> Result<(), String> {
        Ok(())
    }
}

/// What happened in histories.
#[derive(Debug, Default)]
pub struct Count {
    pub acknowledged: usize,
    pub refused: usize,
    pub unknown: usize,
    pub power_losses: usize,
    pub kills: usize,
}

/// Plays as many histories as were asked for, and says what happened in them.
pub fn play_all<S: Subject>(histories: u64) -> (Count, Vec<S::Witness>) {
    let seed = match std::env::var("POWER_LOSS_SEED") {
        Ok(seed) => seed.parse().expect("POWER_LOSS_SEED is a number"),
        Err(_) => {
            u64::from(std::process::id()) << 32
                | u64::from(jiff::Timestamp::now().subsec_nanosecond().unsigned_abs())
        }
    };
    println!("POWER_LOSS_SEED={seed}");
    let mut count = Count::default();
    let mut witnesses = Vec::new();
    for number in 0..histories {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .build()
            .unwrap();
        let mut history = History::<S>::new(seed.wrapping_add(number));
        let played = runtime.block_on(history.play());
        if let Err(error) = played {
            let calls: Vec<_> = history
                .calls
                .iter()
                .map(|call| format!("{call:?}\n"))
                .collect();
            let events = history.events.join("\n");
            panic!(
                "history {number} of POWER_LOSS_SEED={seed} (first of POWER_LOSS_SEED={}): {error}\n{}{events}",
                seed.wrapping_add(number),
                calls.concat(),
            );
        }
        let total = history.count;
        count.acknowledged += total.acknowledged;
        count.refused += total.refused;
        count.unknown += total.unknown;
        count.power_losses += total.power_losses;
        count.kills += total.kills;
        witnesses.push(history.witness);
    }
    println!("{histories} histories: {count:?}");
    (count, witnesses)
}

/// Plays the same history for each operation of the disk and each kind of fault. That operation fails, and then the power goes.
/// Returns how many operations there were.
pub fn fail_each_operation<S: Subject>() -> u64 {
    let mut most = 0;
    for fault in FAULTS {
        for position in 0.. {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_time()
                .build()
                .unwrap();
            let mut history = History::<S>::new(0);
            match runtime.block_on(history.fail_at(position, fault)) {
                Ok(true) => most = most.max(position + 1),
                Ok(false) => break,
                Err(error) => panic!(
                    "{fault:?} at operation {position}: {error}\n{:#?}",
                    history.calls
                ),
            }
        }
    }
    println!("{most} operations, {} kinds of fault", FAULTS.len());
    most
}

struct History<S: Subject> {
    dice: Dice,
    disk: Disk,
    calls: Vec<CallOf<S>>,
    /// What else happened, for messages.
    events: Vec<String>,
    time: Cell<u64>,
    count: Count,
    witness: S::Witness,
}

impl<S: Subject> History<S> {
    fn new(seed: u64) -> Self {
        Self {
            dice: Dice::new(seed),
            disk: Disk::default(),
            calls: Vec::new(),
            events: Vec::new(),
            time: Cell::new(0),
            count: Count::default(),
            witness: S::Witness::default(),
        }
    }

    async fn play(&mut self) -> Result<(), String> {
        // Making the file is not what is tested: a file store makes it aside.
        let mut subject = S::open(&self.disk).await?;
        for _ in 0..3 + self.dice.below(ROUNDS - 2) {
            if self.dice.below(3) > 0 {
                self.plan_fault();
            }
            self.round(&subject).await;
            // A witness that is slow has not seen everything when the process ends.
            if self.dice.below(3) > 0 {
                subject.watch(&mut self.witness).await;
            }
            if self.disk.is_powered_off() || self.dice.below(4) == 0 {
                self.crash();
                drop(subject);
                subject = self.open().await?;
                subject.watch(&mut self.witness).await;
            } else if self.dice.below(2) == 0 {
                self.note("repair");
                self.disk.repair();
            }
        }
        self.note("repair");
        self.disk.repair();
        let last = S::read_all();
        self.call_all(&subject, vec![last]).await;
        if self.calls.last().is_none_or(|call| call.answer.is_none()) {
            return Err("a disk that works again cannot be read".to_owned());
        }
        subject.watch(&mut self.witness).await;
        if !is_linearizable::<S::Model>(&self.calls) {
            return Err("the calls are not linearizable".to_owned());
        }
        S::verify(&self.witness, &self.calls)
    }

    /// Whether the operation at this position has come.
    async fn fail_at(&mut self, position: u64, fault: Fault) -> Result<bool, String> {
        let subject = S::open(&self.disk).await?;
        let at = self.disk.fail(position, fault);
        for _ in 0..ROUNDS_WITH_ONE_FAULT {
            self.round(&subject).await;
        }
        let has_come = self.disk.operations() > at;
        self.disk.power_loss(&mut self.dice);
        self.end_process();
        drop(subject);
        let subject = S::open(&self.disk).await?;
        subject.watch(&mut self.witness).await;
        self.call_all(&subject, vec![S::read_all()]).await;
        if !is_linearizable::<S::Model>(&self.calls) {
            return Err("the calls are not linearizable".to_owned());
        }
        S::verify(&self.witness, &self.calls)?;
        Ok(has_come)
    }

    fn plan_fault(&mut self) {
        let fault = *self.dice.pick(&FAULTS);
        let after = self.dice.below(24);
        self.disk.fail(after, fault);
        self.note(&format!("{fault:?} after {after}"));
    }

    /// Some calls at the same time, most often in one transaction of the file.
    async fn round(&mut self, subject: &S) {
        let operations = (0..1 + self.dice.below(AT_ONCE))
            .map(|_| {
                let number = self.tick();
                S::generate(&mut self.dice, number)
            })
            .collect();
        let hold = (self.dice.below(4) > 0).then(|| Hold::start(subject.store()));
        let ((), ()) = tokio::join!(self.call_all(subject, operations), async { drop(hold) });
    }

    async fn call_all(&mut self, subject: &S, operations: Vec<OperationOf<S>>) {
        let time = &self.time;
        let calls = operations.into_iter().map(|operation| async move {
            let called = tick(time);
            let outcome = subject.call(&operation).await;
            (operation, called, tick(time), outcome)
        });
        for (operation, called, ended, outcome) in join_all(calls).await {
            let (ended, answer) = match outcome {
                Outcome::Answer(answer) => {
                    self.count.acknowledged += 1;
                    (ended, Some(answer))
                }
                // There is nobody left who could say so.
                _ if self.disk.is_powered_off() => (u64::MAX, None),
                Outcome::Nothing => {
                    self.count.refused += 1;
                    self.events
                        .push(format!("{called} to {ended}: nothing done: {operation:?}"));
                    continue;
                }
                Outcome::Unknown => {
                    self.count.unknown += 1;
                    (u64::MAX, None)
                }
            };
            self.calls.push(Call {
                operation,
                called,
                ended,
                answer,
            });
        }
    }

    /// The process ends. Whatever it had under way is done by now, or never.
    fn crash(&mut self) {
        if self.disk.is_powered_off() || self.dice.below(2) == 0 {
            self.disk.power_loss(&mut self.dice);
            self.count.power_losses += 1;
            self.note("power loss");
        } else {
            self.disk.kill();
            self.count.kills += 1;
            self.note("kill");
        }
        self.end_process();
    }

    fn end_process(&mut self) {
        let now = self.tick();
        for call in &mut self.calls {
            call.ended = call.ended.min(now);
        }
        S::disconnect(&mut self.witness);
    }

    /// A new process opens the store. It may meet a fault, and end by it.
    async fn open(&mut self) -> Result<S, String> {
        if self.dice.below(3) == 0 {
            self.plan_fault();
            match S::open(&self.disk).await {
                Ok(subject) => return Ok(subject),
                Err(error) => self.note(&format!("not opened: {error}")),
            }
            self.crash();
        }
        S::open(&self.disk).await
    }

    fn tick(&self) -> u64 {
        tick(&self.time)
    }

    fn note(&mut self, event: &str) {
        let now = self.tick();
        self.events.push(format!("{now}: {event}"));
    }
}

fn tick(time: &Cell<u64>) -> u64 {
    time.set(time.get() + 1);
    time.get()
}
