//! The statements that make the table again.

use marquetry_scylla::cql::{CqlType, TableDef, TypeDef};
use scylla::client::session::Session;

/// The table's definition as CQL, and whether the server gave it: then it has all options, and the table's indexes.
pub(super) async fn definition(session: &Session, table: &TableDef, types: &[TypeDef]) -> (String, bool) {
    let mut text = String::new();
    for needed in needed(table, types) {
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

/// The user-defined types that a table's columns need, each after those that it needs itself.
fn needed<'a>(table: &TableDef, types: &'a [TypeDef]) -> Vec<&'a TypeDef> {
    let mut found = Vec::new();
    for column in &table.columns {
        add(&column.cql_type, types, &mut found, types.len());
    }
    found
}

fn add<'a>(of: &CqlType, types: &'a [TypeDef], found: &mut Vec<&'a TypeDef>, depth: usize) {
    match of {
        CqlType::List(inner) | CqlType::Set(inner) | CqlType::Frozen(inner) | CqlType::Vector(inner, _) => {
            add(inner, types, found, depth);
        }
        CqlType::Map(key, value) => {
            add(key, types, found, depth);
            add(value, types, found, depth);
        }
        CqlType::Tuple(members) => members.iter().for_each(|member| add(member, types, found, depth)),
        CqlType::Udt { name, .. } => {
            let Some(of) = types.iter().find(|it| it.name == *name) else { return };
            let Some(depth) = depth.checked_sub(1).filter(|_| !found.contains(&of)) else { return };
            for (_, field) in &of.fields {
                add(field, types, found, depth);
            }
            if !found.contains(&of) {
                found.push(of);
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use marquetry_scylla::cql::Definitions;

    #[test]
    fn types_come_before_what_needs_them() {
        let made = Definitions::parse(
            "CREATE TYPE k.outer (a frozen<list<frozen<middle>>>, b frozen<inner>); CREATE TYPE k.unused (a int);
             CREATE TYPE k.inner (a int); CREATE TYPE k.middle (a frozen<tuple<int, frozen<inner>>>);
             CREATE TABLE k.t (p int PRIMARY KEY, v map<text, frozen<outer>>, w inner)",
        )
        .unwrap();
        let names = needed(&made.tables[0], &made.types);
        let names: Vec<&str> = names.iter().map(|it| it.name.as_str()).collect();
        assert_eq!(names, ["inner", "middle", "outer"]);
    }
}
