//! kube-rs's reflector as a client of the benchmarks. Several handlers share one by its subscriptions.

use std::cell::Cell;
use std::hint::black_box;

use futures::{StreamExt, TryStreamExt, future};
use k8s_openapi::api::core::v1::Pod;
use kube::core::{Expression, Selector};
use kube::runtime::reflector::{self, ObjectRef, Store, store::Writer};
use kube::runtime::{WatchStreamExt, watcher};
use kube::{Api, Client, ResourceExt};
use peers::{Arguments, LABEL, Outcome, Reads, Subject, handle, serve};
use tokio::runtime::Runtime;

/// Objects that a subscriber may lag behind the others.
const BUFFER: usize = 1024;

struct Reflectors {
    runtime: Runtime,
    pods: Vec<Api<Pod>>,
    stores: Vec<(Store<Pod>, Option<Writer<Pod>>)>,
    config: watcher::Config,
    handlers: usize,
    read: fn(&Pod),
}

impl Reflectors {
    fn new(runtime: Runtime, client: Client, given: &Arguments) -> Outcome<Self> {
        let (informers, handlers) = (given.number("informers", 1)?, given.number("handlers", 1)?);
        let pods = match informers {
            1 => vec![Api::all(client)],
            many => (0..many).map(|i| Api::namespaced(client.clone(), &format!("team-{i}"))).collect(),
        };
        let store = || match handlers {
            1 => reflector::store(),
            _ => reflector::store_shared(BUFFER),
        };
        let stores = (0..informers).map(|_| store()).map(|(store, writer)| (store, Some(writer)));
        let (config, read) = (given.watcher(), given.reader()?);
        Ok(Self { runtime, pods, stores: stores.collect(), config, handlers, read })
    }
}

impl Subject for Reflectors {
    fn start(&mut self) {
        let (read, alone) = (self.read, self.handlers == 1);
        for (pods, (_, writer)) in self.pods.drain(..).zip(&mut self.stores) {
            let writer = writer.take().expect("it starts once");
            for _ in 0..if alone { 0 } else { self.handlers } {
                let subscriber = writer.subscribe().expect("the store is shared");
                self.runtime.spawn(subscriber.for_each(move |pod| {
                    handle(&pod, read);
                    future::ready(())
                }));
            }
            let stream = watcher(pods, self.config.clone()).default_backoff();
            let told = reflector::reflector(writer, stream).applied_objects().inspect_err(|error| eprintln!("{error}"));
            self.runtime.spawn(told.for_each(move |pod| {
                if let (true, Ok(pod)) = (alone, pod) {
                    handle(&pod, read);
                }
                future::ready(())
            }));
        }
    }

    fn wait_synced(&self) -> Outcome<()> {
        for (store, _) in &self.stores {
            self.runtime.block_on(store.wait_until_ready())?;
        }
        Ok(())
    }

    /// Of the first reflector, each of another pod; a store has no index: it is gone through.
    fn reads(&self) -> Option<Reads<'_>> {
        let store = &self.stores[0].0;
        let all = store.state();
        let next = Cell::new(0);
        let some = std::rc::Rc::new(move || {
            next.set((next.get() + 7919) % all.len());
            all[next.get()].clone()
        });
        let look = |found: &[std::sync::Arc<Pod>]| found.iter().for_each(|pod| _ = black_box(pod.name_any()));
        let (one, two, three) = (some.clone(), some.clone(), some);
        Some(vec![
            ("get", Box::new(move || look(store.get(&ObjectRef::from_obj(&*one())).as_slice()))),
            (
                "index",
                Box::new(move || {
                    let wanted = two();
                    look(&store.state_filter(|pod| pod.metadata.namespace == wanted.metadata.namespace));
                }),
            ),
            (
                "label",
                Box::new(move || {
                    let wanted = three().labels().get(LABEL).cloned().unwrap_or_default();
                    look(&store.state_filter_selector(&Selector::from(Expression::Equal(LABEL.into(), wanted))));
                }),
            ),
        ])
    }
}

fn main() -> Outcome<()> {
    let given = Arguments::parse()?;
    let runtime = Runtime::new()?;
    let client = runtime.block_on(given.connect())?;
    let reflectors = Reflectors::new(runtime, client, &given)?;
    serve("kube-rs 5.0.0", &given, reflectors)
}
