//! Page of the accounts and their spending, for operators.

use hyper::StatusCode;
use hyper::header;
use hyper::http::request::Parts;
use posthaste_broker_client::accounts::AccountState;
use posthaste_draw::{Block, Cell, Page, Section, Table};

use super::BrokerHandler;
use super::page::REFRESH;
use super::problem::ProblemDetails;
use super::reply::BrokerReply;
use crate::store::accounts::AccountCounts;

/// Accounts on one page.
const ROWS: usize = 200;

impl BrokerHandler {
    /// Page of the accounts by name.
    pub(super) async fn accounts_page(&self, parts: &Parts) -> Result<BrokerReply, ProblemDetails> {
        self.authenticate_person(parts).await?;
        let accounts = self.accounts_after(parts, ROWS).await?;
        let counts = self.context.metrics.accounts.counts();
        let page = page(&accounts, counts).html();
        Ok(
            BrokerReply::new(StatusCode::OK, "text/html; charset=utf-8", page)
                .with(header::REFRESH, REFRESH)
                .with(header::CACHE_CONTROL, "no-store"),
        )
    }
}

fn page(accounts: &[AccountState], counts: AccountCounts) -> Page {
    let mut section = Section::new("Accounts");
    if accounts.is_empty() {
        let text = "There are none here. The command posthaste accounts add makes one.";
        section.blocks.push(Block::Text(text.to_owned()));
    } else {
        section.blocks.push(Block::Table(table(accounts)));
    }
    let mut links = vec![
        ("Accounts (JSON)".to_owned(), "/v1/accounts".to_owned()),
        (
            "Charges (CSV)".to_owned(),
            "/v1/charges?format=csv".to_owned(),
        ),
    ];
    if let Some(last) = accounts.get(ROWS - 1) {
        let next = format!("/accounts?after={}", last.name);
        links.insert(0, ("Next accounts".to_owned(), next));
    }
    section.blocks.push(Block::Links(links));
    Page {
        title: "posthaste broker: accounts".to_owned(),
        lead: format!(
            "{} open, {} of them beyond their budget, {} closed, as of the last 10 s.",
            counts.open, counts.overdrawn, counts.closed
        ),
        sections: vec![section],
        footer: format!(
            "posthaste {}. This page loads again every {REFRESH} s.",
            env!("CARGO_PKG_VERSION")
        ),
        ..Page::default()
    }
}

fn table(accounts: &[AccountState]) -> Table {
    let mut table = Table::new(["Account", "Spent", "Budget", "Period", "Left", "State"]);
    table.rows = accounts.iter().map(row).collect();
    table
}

fn row(account: &AccountState) -> Vec<Cell> {
    let (budget, spent) = (account.budget, account.spent);
    let left = budget.micros().saturating_sub(spent.micros());
    let left = posthaste_qos::Money::from_micros(left, budget.currency());
    let state = match account.closed {
        Some(at) => format!("closed {at:.0}"),
        None if spent.micros() > budget.micros() => "beyond its budget".to_owned(),
        None if spent.micros() == budget.micros() => "spent".to_owned(),
        None => "open".to_owned(),
    };
    vec![
        Cell::text(account.name.clone()),
        Cell::number(spent.to_string()),
        Cell::number(budget.to_string()),
        Cell::number(account.period.to_string()),
        Cell::number(left.map(|left| left.to_string()).unwrap_or_default()),
        Cell::text(state),
    ]
}
