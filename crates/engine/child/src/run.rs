//! Feeds a waiting child, watches it until it ends, and decides how it ended.

use crate::Error;
use crate::limits::{Grace, Limits};
use crate::lines::{Lines, Overlong, clean};
use crate::outcome::{End, Facts, LogLine, Notice, Report, Source, Summary, Usage, Violation, keep_last};
use crate::process::Process;
use crate::protocol::{Artifact, Event, Failure, Garbage, Level, Place};
use crate::redact::{Redactor, Stream};
use crate::sandbox::Enforcement;
use crate::supervisor::{Leash, Pipes, Spec, Supervisor, Waiting};
use crate::tree::{descendants, end_orphan};
use bytes::Bytes;
use serde::Serialize;
use serde_json::value::RawValue;
use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, Read, Seek, Write};
use std::pin::{Pin, pin};
use std::process::ExitStatus;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tokio::net::unix::pipe;
use tokio::sync::Notify;

/// A child that has answered may take this long to go.
const LINGER: Duration = Duration::from_secs(5);
/// Once every process is gone, what is left in the pipes is there at once.
const DRAIN: Duration = Duration::from_millis(250);
/// Between two looks at the memory of a tree.
const MEMORY_INTERVAL: Duration = Duration::from_millis(500);
/// This many lines on the event channel may be no events before the child is given up.
const GARBAGE_MAX: u32 = 100;
/// A line of a log counts for at least this much: a flood of empty ones is one, too.
const LINE_BYTES_MIN: u64 = 64;
/// Read at once from a pipe, whose usual size is four times this.
const CHUNK_BYTES: usize = 16 * 1024;
/// A larger input is copied on a thread of its own.
const QUICK_COPY_BYTES: u64 = 1024 * 1024;

/// What a child is given to do.
pub struct Work {
    payload: Vec<u8>,
    input: Input,
    redactor: Redactor,
}

/// What our own child reads as its input. It is copied into memory, so that what was checked is what is read,
/// whoever may still be able to write to the original.
pub enum Input {
    /// Nothing.
    None,
    Bytes(Bytes),
    /// This file, from where it stands.
    File(File),
}

impl Work {
    /// Work described by a payload.
    pub fn new(payload: &impl Serialize) -> Result<Self, Error> {
        let payload = serde_json::to_vec(payload).map_err(io::Error::from)?;
        Ok(Self { payload, input: Input::None, redactor: Redactor::default() })
    }

    /// With an input.
    pub fn with_input(self, input: Input) -> Self {
        Self { input, ..self }
    }

    /// With secrets that nothing of what is told may hold. What the child masks is added to them.
    pub fn with_redactor(self, redactor: Redactor) -> Self {
        Self { redactor, ..self }
    }
}

impl Supervisor {
    /// Starts a child and runs it: [`start`](Supervisor::start), then [`Waiting::run`].
    pub async fn run(
        &self,
        spec: &Spec,
        work: Work,
        notice: impl FnMut(Notice) + Send,
        stop: impl Future<Output = ()> + Send,
    ) -> Result<Report, Error> {
        self.start(spec).await?.run(work, notice, stop).await
    }
}

impl Waiting {
    /// Sends the child its work, passes on what it says, and waits until it and everything it started is gone.
    ///
    /// The run ends early when `stop` is ready. Dropping the returned future ends the child as well.
    pub async fn run(
        self,
        work: Work,
        notice: impl FnMut(Notice) + Send,
        stop: impl Future<Output = ()> + Send,
    ) -> Result<Report, Error> {
        let Self { mut leash, pipes, files, limits, grace } = self;
        let (input, output) = files.map(|files| (files.input, files.output)).unzip();
        check_payload(&work.payload, &limits)?;
        hand_over(input, work.input, limits.input_bytes).await?;
        let ears = Ears::new(notice, &limits, work.redactor);
        let ended = {
            let pump = pin!(ears.pump(pipes, work.payload));
            supervise(&mut leash, grace, &ears, pump, stop).await?
        };
        let mut heard = ears.heard.into_inner().unwrap_or_else(PoisonError::into_inner);
        heard.tell_tail();
        heard.report(ended, output, &limits)
    }
}

/// Watches the child until it has ended or must end, and sees to it that everything is gone.
async fn supervise<N: FnMut(Notice) + Send>(
    leash: &mut Leash,
    grace: Grace,
    ears: &Ears<'_, N>,
    mut pump: Pin<&mut impl Future<Output = ()>>,
    stop: impl Future<Output = ()>,
) -> Result<Ended, Error> {
    let started = Instant::now();
    let mut is_pumped = false;
    let end = alongside(watch(leash, ears, stop), pump.as_mut(), &mut is_pumped).await;
    if end != End::Exited {
        // It may have much to say while it cleans up, and must not block on it.
        alongside(leash.end(grace), pump.as_mut(), &mut is_pumped).await?;
    }
    let (status, cpu) = leash.reap()?;
    let usage = Usage { wall_clock: started.elapsed(), cpu };
    if !is_pumped && !leash.is_kept() {
        // What is left in the pipes of a process that was alone is there at once, its hello perhaps included.
        is_pumped = tokio::time::timeout(DRAIN, pump.as_mut()).await.is_ok();
    }
    if leash.is_kept() || !ears.heard().is_locked_in() {
        let record = leash.record().clone();
        in_background(move || end_orphan(&record)).await?;
    }
    if !is_pumped {
        // Past this, a process that could not be ended holds a pipe; what it says is of no interest.
        let _ = tokio::time::timeout(DRAIN, pump).await;
    }
    Ok(Ended { end, status, usage })
}

/// Polls `main` until it is ready, and `side` for as long as it lasts.
async fn alongside<T>(
    main: impl Future<Output = T>,
    side: Pin<&mut impl Future<Output = ()>>,
    is_side_done: &mut bool,
) -> T {
    let mut main = pin!(main);
    if !*is_side_done {
        tokio::select! {
            () = side => *is_side_done = true,
            ready = &mut main => return ready,
        }
    }
    main.await
}

fn check_payload(payload: &[u8], limits: &Limits) -> Result<(), Error> {
    let (bytes, bytes_max) = (payload.len() as u64, limits.payload_bytes);
    if bytes > bytes_max { Err(Error::PayloadTooLarge { bytes, bytes_max }) } else { Ok(()) }
}

/// Copies the input to where the child will read it, and makes it unchangeable.
async fn hand_over(place: Option<File>, input: Input, bytes_max: u64) -> Result<(), Error> {
    let bytes = match &input {
        Input::None => return Ok(()),
        Input::Bytes(bytes) => bytes.len() as u64,
        Input::File(file) => file.metadata()?.len(),
    };
    if bytes > bytes_max {
        return Err(Error::InputTooLarge { bytes, bytes_max });
    }
    let place = place.ok_or(Error::NoInput)?;
    let copy = move || copy_and_seal(place, input, bytes_max);
    if bytes > QUICK_COPY_BYTES { in_background(copy).await? } else { copy() }
}

fn copy_and_seal(mut place: File, input: Input, bytes_max: u64) -> Result<(), Error> {
    match input {
        Input::None => {}
        Input::Bytes(bytes) => place.write_all(&bytes)?,
        Input::File(file) => {
            // It may have grown since it was measured.
            let bytes = io::copy(&mut file.take(bytes_max + 1), &mut place)?;
            if bytes > bytes_max {
                return Err(Error::InputTooLarge { bytes, bytes_max });
            }
        }
    }
    #[cfg(target_os = "linux")]
    {
        use rustix::fs::{SealFlags, fcntl_add_seals};
        let seals = SealFlags::WRITE | SealFlags::GROW | SealFlags::SHRINK | SealFlags::SEAL;
        fcntl_add_seals(&place, seals).map_err(io::Error::from)?;
    }
    Ok(())
}

/// Runs what blocks on a thread that may.
async fn in_background<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<T, Error> {
    tokio::task::spawn_blocking(work).await.map_err(|error| io::Error::other(error).into())
}

/// Waits until there is a reason to end the child, or until it has ended by itself.
async fn watch<N>(leash: &Leash, ears: &Ears<'_, N>, stop: impl Future<Output = ()>) -> End {
    let lingers = async {
        ears.answered.notified().await;
        tokio::time::sleep(LINGER).await;
    };
    tokio::select! {
        biased;
        () = leash.exited() => End::Exited,
        () = ears.broken.notified() => End::Broken,
        () = stop => End::Stop,
        () = tokio::time::sleep(ears.limits.wall_clock) => End::Deadline,
        () = outgrows(leash, ears.limits.resident_bytes) => End::Memory,
        () = lingers => End::Lingered,
    }
}

/// Waits until the tree uses more memory than allowed.
async fn outgrows(leash: &Leash, bytes_max: Option<u64>) {
    let Some(bytes_max) = bytes_max else { return std::future::pending().await };
    let pid = leash.record().pid;
    loop {
        tokio::time::sleep(MEMORY_INTERVAL).await;
        let used = in_background(move || {
            let below = descendants(pid).into_iter();
            below.chain(Process::look(pid)).map(|process| process.resident_bytes()).sum::<u64>()
        });
        // An error means that the runtime is shutting down, and the child with it.
        if used.await.unwrap_or(0) > bytes_max {
            return;
        }
    }
}

/// Listens to everything that a child says.
struct Ears<'a, N> {
    heard: Mutex<Heard<N>>,
    limits: &'a Limits,
    redactor: Redactor,
    /// The child has answered.
    answered: Notify,
    /// The child has broken the protocol.
    broken: Notify,
}

/// What a child has said so far.
struct Heard<N> {
    notice: N,
    enforcement: Enforcement,
    answer: Option<Result<Box<RawValue>, Failure>>,
    summary: Summary,
    artifacts: Vec<Artifact>,
    violation: Option<Violation>,
    events: u32,
    garbage: u32,
    /// Why the last line that was no event was none.
    misread: Option<String>,
    log_bytes: u64,
    log_bytes_dropped: u64,
    log_tail: VecDeque<LogLine>,
    log_tail_bytes: u64,
    stderr: Vec<String>,
}

/// The event channel. Whoever reads anything else catches up with it first.
struct Channel {
    pipe: pipe::Receiver,
    lines: Mutex<Lines>,
}

impl<'a, N: FnMut(Notice) + Send> Ears<'a, N> {
    fn new(notice: N, limits: &'a Limits, redactor: Redactor) -> Self {
        let heard = Heard {
            notice,
            enforcement: Enforcement::None,
            answer: None,
            summary: Summary::default(),
            artifacts: Vec::new(),
            violation: None,
            events: 0,
            garbage: 0,
            misread: None,
            log_bytes: 0,
            log_bytes_dropped: 0,
            log_tail: VecDeque::new(),
            log_tail_bytes: 0,
            stderr: Vec::new(),
        };
        Self { heard: Mutex::new(heard), limits, redactor, answered: Notify::new(), broken: Notify::new() }
    }

    fn heard(&self) -> MutexGuard<'_, Heard<N>> {
        // A panic of the caller's own function must not become a second one here.
        self.heard.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Feeds the payload and listens, until the child and all who share its pipes have closed them.
    async fn pump(&self, pipes: Pipes, payload: Vec<u8>) {
        let Pipes { payload: stdin, stdout, stderr, events } = pipes;
        let lines = Mutex::new(Lines::new(self.limits.event_bytes, Overlong::Refuse));
        let channel = Channel { pipe: events, lines };
        tokio::join!(
            feed(stdin, &payload),
            self.listen_to_log(stdout, Source::Stdout, &channel),
            self.listen_to_log(stderr, Source::Stderr, &channel),
            self.listen_to_events(&channel),
        );
    }

    async fn listen_to_log(&self, pipe: pipe::Receiver, source: Source, channel: &Channel) {
        let bytes_max = self.limits.log_line_bytes;
        let mut stream = Stream::new(self.redactor.clone());
        let mut lines = Lines::new(bytes_max, Overlong::Cut);
        let mut log = |line: &[u8]| self.heard().log_output(source, line, self.limits);
        let mut chunk = vec![0; CHUNK_BYTES];
        while let Some(bytes) = read(&pipe, &mut chunk).await {
            self.catch_up(channel);
            // Lines that are cut are never too long.
            let _ = lines.push(&stream.push(bytes), &mut log);
        }
        // As above.
        let _ = lines.push(&stream.finish(), &mut log);
        lines.finish(log);
    }

    async fn listen_to_events(&self, channel: &Channel) {
        let mut chunk = vec![0; CHUNK_BYTES];
        while let Some(bytes) = read(&channel.pipe, &mut chunk).await {
            self.hear_all(channel, bytes);
        }
        channel.lines().finish(|line| self.hear(line));
    }

    /// Listens to the events that were there before what was just read elsewhere: a secret that the child masked
    /// before it printed it must be known by then.
    fn catch_up(&self, channel: &Channel) {
        let mut chunk = vec![0; CHUNK_BYTES];
        // Past the runtime, which may not have been told yet that there is something to read.
        while let Ok(length @ 1..) = rustix::io::read(&channel.pipe, &mut chunk[..]) {
            self.hear_all(channel, &chunk[..length]);
        }
    }

    /// Once the protocol is broken it reads on without listening, so that the child can end in order.
    fn hear_all(&self, channel: &Channel, bytes: &[u8]) {
        let is_broken = self.heard().violation.is_some();
        if !is_broken && channel.lines().push(bytes, |line| self.hear(line)).is_err() {
            self.break_off(Violation::LongEvent);
        }
    }

    fn hear(&self, line: &[u8]) {
        let mut heard = self.heard();
        if heard.violation.is_some() {
            return;
        }
        let had_answer = heard.answer.is_some();
        let result = heard.event(line, self.limits, &self.redactor);
        let has_answer = heard.answer.is_some();
        drop(heard);
        if has_answer && !had_answer {
            self.answered.notify_one();
        }
        if let Err(violation) = result {
            self.break_off(violation);
        }
    }

    fn break_off(&self, violation: Violation) {
        self.heard().violation = Some(violation);
        self.broken.notify_one();
    }
}

impl<N: FnMut(Notice)> Heard<N> {
    fn event(&mut self, line: &[u8], limits: &Limits, redactor: &Redactor) -> Result<(), Violation> {
        self.events += 1;
        if self.events > limits.events {
            return Err(Violation::ManyEvents);
        }
        let event = match Event::parse(line, redactor) {
            Ok(event) => event,
            Err(Garbage(why)) => return self.garbage(&redactor.text(&why), &redactor.bytes(line), limits),
        };
        if self.answer.is_some() {
            let is_answer = matches!(event, Event::Result(..) | Event::Error(_));
            return Err(if is_answer { Violation::SecondAnswer } else { Violation::EventAfterAnswer });
        }
        match event {
            Event::Hello(enforcement) => self.enforcement = enforcement,
            Event::Progress(progress) => (self.notice)(Notice::Progress(progress)),
            Event::Log(level, text) => self.log(LogLine { source: Source::Events, level, text }, limits),
            Event::Plan(steps) => (self.notice)(Notice::Plan(steps)),
            Event::Step(id, state) => (self.notice)(Notice::Step(id, state)),
            Event::Checkpoint(key, data) => (self.notice)(Notice::Checkpoint { key, data }),
            Event::Mask(secret) => {
                redactor.add(&secret);
                if redactor.is_overfull() {
                    return Err(Violation::ManySecrets);
                }
            }
            Event::Artifact(artifact) => self.artifacts.push(artifact),
            Event::Result(value, summary) => {
                self.answer = Some(Ok(value));
                self.summary = summary;
            }
            Event::Error(failure) => self.answer = Some(Err(failure)),
            Event::Unknown => {}
        }
        Ok(())
    }

    /// A line that is no event may be a stray print of a library. It is shown, and forgiven for a while.
    fn garbage(&mut self, why: &str, line: &[u8], limits: &Limits) -> Result<(), Violation> {
        self.garbage += 1;
        let why = clean(why.as_bytes(), limits.log_line_bytes);
        let line = clean(line, limits.log_line_bytes);
        let text = format!("A line was not understood, because {why}: {line}");
        self.misread = Some(why);
        if self.garbage > GARBAGE_MAX {
            return Err(Violation::Garbage);
        }
        let text = clean(text.as_bytes(), limits.log_line_bytes);
        self.log(LogLine { source: Source::Events, level: Level::Warn, text }, limits);
        Ok(())
    }

    fn log_output(&mut self, source: Source, line: &[u8], limits: &Limits) {
        let level = if source == Source::Stderr { Level::Warn } else { Level::Info };
        if source == Source::Stderr {
            keep_last(&mut self.stderr, line, limits.log_line_bytes);
        }
        self.log(LogLine { source, level, text: clean(line, limits.log_line_bytes) }, limits);
    }

    fn log(&mut self, line: LogLine, limits: &Limits) {
        let bytes = cost(&line);
        if self.log_bytes + bytes <= limits.log_bytes && self.log_tail.is_empty() {
            self.log_bytes += bytes;
            return (self.notice)(Notice::Log(line));
        }
        self.log_tail_bytes += bytes;
        self.log_tail.push_back(line);
        while self.log_tail_bytes > limits.log_tail_bytes {
            let Some(dropped) = self.log_tail.pop_front() else { break };
            self.log_tail_bytes -= cost(&dropped);
            self.log_bytes_dropped += dropped.text.len() as u64 + 1;
        }
    }

    /// Tells the end of a log that was too long to be told whole.
    fn tell_tail(&mut self) {
        let tail = std::mem::take(&mut self.log_tail);
        if !tail.is_empty() && self.log_bytes_dropped > 0 {
            let text = format!("({} bytes of the log were left out here)", self.log_bytes_dropped);
            (self.notice)(Notice::Log(LogLine { source: Source::Events, level: Level::Warn, text }));
        }
        tail.into_iter().for_each(|line| (self.notice)(Notice::Log(line)));
    }
}

/// What a line takes of what a log may have.
fn cost(line: &LogLine) -> u64 {
    (line.text.len() as u64 + 1).max(LINE_BYTES_MIN)
}

impl Channel {
    fn lines(&self) -> MutexGuard<'_, Lines> {
        self.lines.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// How the process itself ended.
struct Ended {
    end: End,
    status: ExitStatus,
    usage: Usage,
}

impl<N> Heard<N> {
    /// Whether the child can have started no other process. It said so before it saw a byte from outside.
    fn is_locked_in(&self) -> bool {
        self.enforcement == Enforcement::Full
    }

    fn report(self, ended: Ended, mut output: Option<File>, limits: &Limits) -> Result<Report, Error> {
        let Ended { end, status, usage } = ended;
        let length = output.as_mut().map_or(Ok(0), |output| output.seek(io::SeekFrom::End(0)))?;
        if let Some(output) = &mut output {
            output.rewind()?;
        }
        let is_there = |artifact: &Artifact| match artifact.place {
            Place::Output { offset, bytes } => offset.checked_add(bytes).is_some_and(|end| end <= length),
            Place::File(_) => true,
        };
        let missing = (!self.artifacts.iter().all(is_there)).then_some(Violation::MissingArtifact);
        let facts = Facts {
            end,
            violation: self.violation.or(missing),
            answer: self.answer,
            status,
            cpu: usage.cpu,
            cpu_seconds_max: limits.cpu_seconds,
            is_output_too_large: length > limits.output_bytes,
            stderr: self.stderr,
        };
        Ok(Report {
            outcome: facts.outcome(),
            summary: self.summary,
            artifacts: self.artifacts.into_iter().filter(is_there).collect(),
            output,
            misread: self.misread,
            enforcement: self.enforcement,
            usage,
            log_bytes_dropped: self.log_bytes_dropped,
            status,
        })
    }
}

/// Writes the payload and closes the pipe. A child that does not want to hear it all may close its end.
async fn feed(pipe: pipe::Sender, mut payload: &[u8]) {
    while !payload.is_empty() {
        match pipe.try_write(payload) {
            Ok(written) => payload = &payload[written..],
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                if pipe.writable().await.is_err() {
                    return;
                }
            }
            Err(_) => return,
        }
    }
}

/// Reads what is there; none at the end.
async fn read<'a>(pipe: &pipe::Receiver, chunk: &'a mut [u8]) -> Option<&'a [u8]> {
    loop {
        pipe.readable().await.ok()?;
        match pipe.try_read(chunk) {
            Ok(0) => return None,
            Ok(bytes) => return Some(&chunk[..bytes]),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(_) => return None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_child_that_masks_more_than_can_be_hidden_is_broken_off() {
        let limits = Limits::program();
        let ears = Ears::new(|_| (), &limits, Redactor::with_room(100_000));
        let mask = |number: u32| ears.hear(format!(r#"{{"t":"mask","value":"token-{number}"}}"#).as_bytes());
        mask(0);
        assert_eq!(ears.heard().violation, None);
        (1..1000).for_each(mask);
        assert_eq!(ears.heard().violation, Some(Violation::ManySecrets));
    }
}
