//! Writing transactions in as few round trips as possible: three, or four with a write of a complete list.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet, HashMap};

use jiff::Timestamp;
use tokio_postgres::Row;
use tokio_postgres::types::ToSql;

use super::super::StoreError;
use super::super::plan::{Standing, Standings, StoredOffer, WriteStep, alone, keys, tags_count};
use super::number;
use super::session::Session;
use crate::change::{OfferKey, Tag};
use crate::store::Write;

/// Parameter of a statement.
pub(super) type Value<'v> = &'v (dyn ToSql + Sync);

impl Session {
    /// Begins an exclusive writing transaction. Returns the number of the last change.
    pub(super) async fn begin(&self) -> Result<u64, StoreError> {
        let Self { client, statements } = self;
        let begun = tokio::try_join!(
            biased;
            client.batch_execute("BEGIN ISOLATION LEVEL READ COMMITTED"),
            client.query_one(&statements.lock, &[]),
        );
        let ((), last) = begun?;
        Ok(number(&last, 0))
    }

    pub(super) async fn end(&self, how: &str) -> Result<(), StoreError> {
        Ok(self.client.batch_execute(how).await?)
    }

    /// State of the stored offers that `writes` concern.
    pub(super) async fn standing<'w>(
        &self,
        writes: &'w [Write],
    ) -> Result<Standings<'w>, StoreError> {
        let Self { client, statements } = self;
        let keys_by_name: HashMap<[&str; 3], &OfferKey> =
            keys(writes).map(|key| (names(key), key)).collect();
        let [kinds, providers, names] = columns(keys_by_name.values().copied());
        let tagged = tags_count(writes);
        let values: [Value<'_>; 4] = [&kinds, &providers, &names, &tagged];
        let mut rows = client.query(&statements.standing, &values).await?;
        let alone: BTreeSet<[&str; 2]> = alone(writes)
            .map(|group| [&*group.kind, &*group.provider])
            .collect();
        if !alone.is_empty() {
            let [kinds, providers] =
                [0, 1].map(|name| Vec::from_iter(alone.iter().map(|group| group[name])));
            let values: [Value<'_>; 2] = [&kinds, &providers];
            rows.extend(client.query(&statements.all_of, &values).await?);
        }
        let standing = |row: &Row| {
            let names = [row.get(2), row.get(3), row.get(4)];
            let key = match keys_by_name.get(&names) {
                Some(key) => Cow::Borrowed(*key),
                None => Cow::Owned(OfferKey::new(names[0], names[1], names[2])),
            };
            let body: Option<&str> = row.get(1);
            let tag = body.map(|body| Tag::of_json(body.as_bytes()));
            let expires = row.get(0);
            (key, Standing { expires, tag })
        };
        Ok(rows.iter().map(standing).collect())
    }

    /// Executes `steps`, numbered from `last` + 1, and commits.
    pub(super) async fn make(
        &self,
        steps: &[WriteStep<'_>],
        last: u64,
        now: Timestamp,
    ) -> Result<(), StoreError> {
        let Self { client, statements } = self;
        // Only the last of several steps for one offer changes the table.
        let ends: BTreeMap<&OfferKey, Option<&StoredOffer>> = steps
            .iter()
            .map(|step| (&*step.key, step.body.as_ref()))
            .collect();
        let put: Vec<(&OfferKey, &StoredOffer)> = ends
            .iter()
            .filter_map(|(key, body)| Some((*key, (*body)?)))
            .collect();
        let gone = ends.iter().filter(|(_, body)| body.is_none());
        let [put_kinds, put_providers, put_names] = columns(put.iter().map(|(key, _)| *key));
        let expires: Vec<i64> = put.iter().map(|(_, body)| body.expires).collect();
        let bodies: Vec<&str> = put.iter().map(|(_, body)| &*body.json).collect();
        let [gone_kinds, gone_providers, gone_names] = columns(gone.map(|(key, _)| *key));
        let numbers: Vec<i64> = (last as i64 + 1..).take(steps.len()).collect();
        let tokens: Vec<i64> = steps.iter().map(|step| step.by as i64).collect();
        let [kinds, providers, names] = columns(steps.iter().map(|step| &*step.key));
        let logged: Vec<Option<&str>> = steps
            .iter()
            .map(|step| step.body.as_ref().map(|body| &*body.json))
            .collect();
        let (at, last) = (now.as_microsecond(), (last as usize + steps.len()) as i64);
        let put = [
            &put_kinds as Value<'_>,
            &put_providers,
            &put_names,
            &expires,
            &bodies,
        ];
        let gone = [&gone_kinds as Value<'_>, &gone_providers, &gone_names];
        let note = [
            &numbers as Value<'_>,
            &at,
            &tokens,
            &kinds,
            &providers,
            &names,
            &logged,
        ];
        let last = [&last as Value<'_>];
        // Pipelined: after a failed statement, COMMIT rolls the transaction back.
        let done = tokio::try_join!(
            biased;
            client.execute(&statements.put, &put),
            client.execute(&statements.remove, &gone),
            client.execute(&statements.note, &note),
            client.execute(&statements.number, &last),
            client.execute(&statements.notify, &[]),
            client.batch_execute("COMMIT"),
        )?;
        debug_assert_eq!(
            done.2,
            steps.len() as u64,
            "a change without its entry in the log"
        );
        Ok(())
    }
}

/// Names of a key.
fn names(key: &OfferKey) -> [&str; 3] {
    [&key.kind, &key.provider, &key.name]
}

/// Names of keys, by column.
fn columns<'k>(keys: impl Iterator<Item = &'k OfferKey>) -> [Vec<&'k str>; 3] {
    let mut columns = [const { Vec::new() }; 3];
    for key in keys {
        for (column, name) in columns.iter_mut().zip(names(key)) {
            column.push(name);
        }
    }
    columns
}
