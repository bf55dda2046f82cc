//! The statements that make the table again.

use marquetry_scylla::cql::{TableDef, TypeDef};
use scylla::client::session::Session;

/// The table's definition as CQL, and whether the server gave it: then it has all options, and the table's indexes.
pub(super) async fn definition(session: &Session, table: &TableDef, types: &[TypeDef]) -> (String, bool) {
    let mut text = String::new();
    for needed in table.types_among(types) {
        text.push_str(&needed.to_string());
        text.push('\n');
    }
    let described = described(session, table).await;
    text.push_str(described.as_deref().unwrap_or(&table.to_string()));
    (text, described.is_some())
}

/// What `DESCRIBE` says of the table and its indexes. `None`: the server does not know the statement, or not the table.
async fn described(session: &Session, table: &TableDef) -> Option<String> {
    let answer = session.query_unpaged(format!("DESCRIBE {}", table.table), ()).await.ok()?;
    let answer = answer.into_rows_result().ok()?;
    let rows = answer.rows::<(String, String, String, String)>().ok()?;
    let mut text = String::new();
    for row in rows {
        let (_, kind, name, statement) = row.ok()?;
        // Views of the table are tables of their own.
        let own = &table.table.table;
        let is_other = kind.contains("view") && name != own.as_str() && name != own.to_string();
        if is_other {
            continue;
        }
        text.push_str(statement.trim_end());
        text.push_str(if statement.trim_end().ends_with(';') { "\n" } else { ";\n" });
    }
    (!text.is_empty()).then_some(text)
}
