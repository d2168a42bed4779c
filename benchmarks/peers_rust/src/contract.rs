//! What every client of the benchmarks does: see ../../CONTRACT.md.

use std::collections::{BTreeMap, HashMap};
use std::error::Error;
use std::hint::black_box;
use std::io::{BufRead, stdin};
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering::Relaxed};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, LazyLock, RwLock};
use std::time::{Duration, Instant};

use k8s_openapi::api::core::v1::Pod;
use kube::runtime::watcher;
use kube::{Client, Config, ResourceExt};
use serde_json::{Map, Value, json};

pub type Outcome<T> = Result<T, Box<dyn Error + Send + Sync>>;

const ANNOTATION: &str = "benchmark.example.com/sent";

/// The command line: those arguments that concern a client in Rust, the others are accepted and forgotten.
pub struct Arguments(HashMap<String, String>);

impl Arguments {
    pub fn parse() -> Outcome<Self> {
        let words: Vec<String> = std::env::args().skip(1).collect();
        let named = |pair: &[String]| match pair {
            [name, value] => Ok((name.trim_start_matches('-').to_owned(), value.clone())),
            _ => Err(format!("{pair:?} is no --name value")),
        };
        Ok(Self(words.chunks(2).map(named).collect::<Result<_, _>>()?))
    }

    pub fn text(&self, name: &str) -> &str {
        self.0.get(name).map_or("", String::as_str)
    }

    pub fn number(&self, name: &str, otherwise: usize) -> Outcome<usize> {
        self.0.get(name).map_or(Ok(otherwise), |text| Ok(text.parse()?))
    }

    /// The connections that are going to be used, after one request through them.
    pub async fn connect(&self) -> Outcome<Client> {
        if self.text("encoding") == "protobuf" {
            unsupported("kube-rs reads JSON only");
        }
        let mut config = Config::new(self.text("server").parse()?);
        if !self.text("ca").is_empty() {
            config.root_cert_file = Some(self.text("ca").into());
        }
        let client = Client::try_from(config)?;
        client.apiserver_version().await?;
        Ok(client)
    }

    /// What a handler reads of an object.
    pub fn reader(&self) -> Outcome<fn(&Pod)> {
        match self.text("handler") {
            "metadata" => Ok(metadata),
            "field" => Ok(field),
            "whole" => Ok(whole),
            other => Err(format!("no handler reads {other:?}").into()),
        }
    }

    pub fn watcher(&self) -> watcher::Config {
        match self.text("initial") {
            "watchlist" => watcher::Config::default().streaming_lists(),
            _ => watcher::Config::default(),
        }
    }
}

/// The label that handlers of metadata read.
pub const LABEL: &str = "app";

fn metadata(pod: &Pod) {
    let metadata = &pod.metadata;
    black_box((&metadata.namespace, &metadata.name, &metadata.resource_version, pod.labels().get(LABEL)));
}

fn field(pod: &Pod) {
    let (metadata, spec) = (&pod.metadata, pod.spec.as_ref());
    let node = spec.and_then(|spec| spec.node_name.as_ref());
    black_box((&metadata.namespace, &metadata.name, &metadata.resource_version, node));
}

fn whole(pod: &Pod) {
    let node = pod.spec.as_ref().and_then(|spec| spec.node_name.as_ref());
    let phase = pod.status.as_ref().and_then(|status| status.phase.as_ref());
    black_box((&pod.metadata.name, node, phase));
}

/// Ends a client that has nothing to do in a scenario.
pub fn unsupported(why: &str) -> ! {
    eprintln!("{why}");
    std::process::exit(3)
}

/// CLOCK_MONOTONIC in nanoseconds.
fn monotonic() -> i64 {
    let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the pointer is to a timespec of our own.
    assert_eq!(unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut now) }, 0);
    now.tv_sec * 1_000_000_000 + now.tv_nsec
}

/// The seconds of user and system time that this process has had.
fn cpu() -> f64 {
    let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the pointer is to a timespec of our own.
    assert_eq!(unsafe { libc::clock_gettime(libc::CLOCK_PROCESS_CPUTIME_ID, &raw mut now) }, 0);
    now.tv_sec as f64 + now.tv_nsec as f64 / 1e9
}

/// Gives free memory back; there is no garbage to be collected.
fn settle() {
    // SAFETY: it takes no pointer and may be called at any time.
    unsafe { libc::malloc_trim(0) };
}

struct Phase {
    expected: u64,
    /// Objects that are no newer were there before: a relist tells of them again.
    floor: u64,
    told: AtomicU64,
    stamped: bool,
    latencies: Box<[AtomicI64]>,
    over: Sender<(f64, i64)>,
}

static CURRENT: RwLock<Option<Arc<Phase>>> = RwLock::new(None);
static NEWEST: AtomicU64 = AtomicU64::new(0);
static UNSEEN: LazyLock<BTreeMap<String, String>> = LazyLock::new(BTreeMap::new);

fn begin(expected: usize, stamped: bool) -> (Arc<Phase>, Receiver<(f64, i64)>) {
    let (over, wait) = channel();
    let room = if stamped { expected } else { 0 };
    let phase = Arc::new(Phase {
        expected: expected as u64,
        floor: NEWEST.load(Relaxed),
        told: AtomicU64::new(0),
        stamped,
        latencies: (0..room).map(|_| AtomicI64::new(0)).collect(),
        over,
    });
    if expected == 0 {
        phase.over.send((cpu(), monotonic())).expect("the receiver is here");
    }
    *CURRENT.write().unwrap() = Some(phase.clone());
    (phase, wait)
}

/// What a handler does: in stamped phases the clock comes first, then it reads, then its call is counted.
pub fn handle(pod: &Pod, read: fn(&Pod)) {
    let Some(phase) = CURRENT.read().unwrap().clone() else {
        return;
    };
    let entered = if phase.stamped { monotonic() } else { 0 };
    read(pod);
    let version = pod.metadata.resource_version.as_deref().and_then(|text| text.parse().ok());
    let version: u64 = version.expect("resource versions are numbers");
    if version <= phase.floor {
        return;
    }
    NEWEST.fetch_max(version, Relaxed);
    let told = phase.told.fetch_add(1, Relaxed) + 1;
    if told > phase.expected {
        return;
    }
    if phase.stamped {
        let annotations = pod.metadata.annotations.as_ref().unwrap_or(&UNSEEN);
        let sent: i64 = annotations[ANNOTATION].parse().expect("the server writes nanoseconds");
        phase.latencies[told as usize - 1].store(entered - sent, Relaxed);
    }
    if told == phase.expected {
        let _ = phase.over.send((cpu(), monotonic())); // nobody waits once the process ends
    }
}

/// By nearest rank, microseconds.
fn percentiles(mut nanoseconds: Vec<i64>) -> Value {
    nanoseconds.sort_unstable();
    let count = nanoseconds.len();
    let at = |thousandth: usize| match (count * thousandth).div_ceil(1000).max(1) {
        rank if rank <= count => nanoseconds[rank - 1] as f64 / 1e3,
        _ => 0.0,
    };
    json!({
        "count": count, "p50": at(500), "p90": at(900), "p99": at(990), "p999": at(999), "max": at(1000)
    })
}

/// One of each kind of read, to be timed.
pub type Reads<'a> = Vec<(&'static str, Box<dyn FnMut() + 'a>)>;

/// What is measured.
pub trait Subject {
    /// Begins to inform; each object that a handler is told of goes through [`handle`].
    fn start(&mut self);
    /// Returns once everything has synced.
    fn wait_synced(&self) -> Outcome<()>;
    /// None if there is no cache that could be read.
    fn reads(&self) -> Option<Reads<'_>>;
}

/// Goes through the phases as standard input tells.
pub fn serve(version: &str, given: &Arguments, mut subject: impl Subject) -> Outcome<()> {
    let (objects, handlers) = (given.number("objects", 0)?, given.number("handlers", 1)?);
    settle();
    println!("{}", json!({"phase": "ready", "version": version}));
    for line in stdin().lock().lines() {
        let line = line?;
        let words: Vec<&str> = line.split_whitespace().collect();
        let (began, spent) = (Instant::now(), cpu());
        match words[..] {
            ["sync"] => {
                let (_, wait) = begin(objects * handlers, false);
                subject.start();
                wait.recv()?;
                subject.wait_synced()?;
                let (cpu, wall) = (cpu() - spent, began.elapsed().as_secs_f64());
                settle();
                println!("{}", json!({"phase": "synced", "wall": wall, "cpu": cpu}));
            }
            ["watch", events, kind] => {
                let (phase, wait) = begin(events.parse::<usize>()? * handlers, kind == "stamped");
                println!("{}", json!({"phase": "watching"}));
                let (cpu, ended) = wait.recv()?;
                let mut said = json!({"phase": "watched", "cpu": cpu - spent, "ended": ended});
                if phase.stamped {
                    let taken = phase.latencies.iter().map(|latency| latency.load(Relaxed));
                    said["latency_us"] = percentiles(taken.collect());
                }
                println!("{said}");
            }
            ["reads", seconds] => {
                let Some(reads) = subject.reads() else {
                    unsupported("it has no cache that could be read");
                };
                println!("{}", json!({"phase": "watching"}));
                let taken = time_reads(reads, seconds.parse()?);
                let said = json!({"phase": "watched", "cpu": cpu() - spent, "ended": monotonic(), "read_us": taken});
                println!("{said}");
            }
            _ => break,
        }
    }
    Ok(())
}

/// Does each of the reads ten times a second.
fn time_reads(mut reads: Reads<'_>, seconds: u32) -> Value {
    let mut taken: HashMap<&str, Vec<i64>> = HashMap::new();
    let began = Instant::now();
    for turn in 1..=seconds * 10 {
        let due = Duration::from_millis(100) * turn;
        std::thread::sleep(due.saturating_sub(began.elapsed()));
        for (kind, read) in &mut reads {
            let began = monotonic();
            read();
            taken.entry(kind).or_default().push(monotonic() - began);
        }
    }
    let said: Map<_, _> = taken.into_iter().map(|(kind, all)| (kind.into(), percentiles(all))).collect();
    Value::Object(said)
}
