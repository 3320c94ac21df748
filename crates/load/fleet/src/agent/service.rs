//! An agent as a service of the NATS service API (ADR-32): discovery, and its clock.
//!
//! `nats micro ls` and `nats micro info posthaste-agent` show the agents. async-nats' own service is not used: its
//! metadata are fixed, and a request without a reply subject ends it.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use async_nats::service::endpoint::Info as EndpointInfo;
use async_nats::service::{Info, PingResponse};
use async_nats::{Message, SubscribeError, Subscriber};
use bytes::Bytes;
use futures_util::stream::{SelectAll, select_all};
use futures_util::{StreamExt as _, stream::BoxStream};
use tokio::task::JoinHandle;

use crate::machine::clock::monotonic_ns;
use crate::nats::connection::Connection;
use crate::protocol::message::{AgentInfo, BUSY};
use crate::protocol::names::RunId;
use crate::protocol::subjects::{SERVICE, Subjects};

/// Version of the service: that of the protocol.
const VERSION: &str = "1.0.0";

/// The present run, shared with the task.
pub(crate) type PresentRun = Arc<Mutex<Option<RunId>>>;

/// The running service. Dropping it ends it.
pub(crate) struct ServiceTask {
    task: JoinHandle<()>,
}

#[derive(Clone, Copy)]
enum Question {
    Ping,
    Info,
    Clock,
}

impl ServiceTask {
    /// Subscribes, and replies from a task of its own, so that preparations do not delay the clock.
    pub(crate) async fn start(
        connection: &Connection,
        subjects: &Subjects,
        info: &AgentInfo,
        run: PresentRun,
    ) -> Result<Self, SubscribeError> {
        let id = format!(
            "{:016x}",
            u64::from_ne_bytes(crate::machine::random::bytes())
        );
        let client = connection.client();
        let mut questions: Vec<BoxStream<'static, (Question, Message)>> = Vec::new();
        let mut add = |question, subscriber: Subscriber| {
            questions.push(subscriber.map(move |message| (question, message)).boxed());
        };
        for (verb, question) in [("PING", Question::Ping), ("INFO", Question::Info)] {
            for subject in [
                format!("$SRV.{verb}"),
                format!("$SRV.{verb}.{SERVICE}"),
                format!("$SRV.{verb}.{SERVICE}.{id}"),
            ] {
                add(question, client.subscribe(subject).await?);
            }
        }
        add(
            Question::Clock,
            client.subscribe(subjects.clock(&info.name)).await?,
        );
        let described = described(subjects, info, id);
        let task = reply_all(connection.clone(), select_all(questions), described, run);
        Ok(Self {
            task: tokio::spawn(task),
        })
    }
}

impl Drop for ServiceTask {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn reply_all(
    connection: Connection,
    mut questions: SelectAll<BoxStream<'static, (Question, Message)>>,
    described: Info,
    run: PresentRun,
) {
    while let Some((question, message)) = questions.next().await {
        let Some(reply) = message.reply else {
            continue;
        };
        let body = match question {
            Question::Clock => Bytes::copy_from_slice(&monotonic_ns().to_be_bytes()),
            Question::Ping => json(&ping(&described)),
            Question::Info => {
                let run = *run.lock().unwrap_or_else(PoisonError::into_inner);
                json(&present(&described, run))
            }
        };
        // A lost reply is a lost message: the conductor asks again.
        let _ = connection.client().publish(reply, body).await;
    }
}

fn json(value: &impl serde::Serialize) -> Bytes {
    let json = serde_json::to_vec(value);
    json.expect("names and texts are always JSON").into()
}

fn described(subjects: &Subjects, info: &AgentInfo, id: String) -> Info {
    let endpoint = |name: &str, subject| EndpointInfo {
        name: name.to_owned(),
        subject,
        queue_group: String::new(),
        metadata: HashMap::new(),
    };
    Info {
        kind: "io.nats.micro.v1.info_response".to_owned(),
        name: SERVICE.to_owned(),
        id,
        description: "Carries out runs of posthaste".to_owned(),
        version: VERSION.to_owned(),
        metadata: info.to_metadata(),
        endpoints: vec![
            endpoint("clock", subjects.clock(&info.name)),
            endpoint("prepare", subjects.prepare(&info.name)),
            endpoint("arm", subjects.arm(&info.name)),
        ],
    }
}

fn ping(described: &Info) -> PingResponse {
    PingResponse {
        kind: "io.nats.micro.v1.ping_response".to_owned(),
        name: described.name.clone(),
        id: described.id.clone(),
        version: described.version.clone(),
        metadata: described.metadata.clone(),
    }
}

fn present(described: &Info, run: Option<RunId>) -> Info {
    let mut info = described.clone();
    if let Some(run) = run {
        info.metadata.insert(BUSY.to_owned(), run.to_string());
    }
    info
}
