//! Conditions, and what combines them.
//!
//! Parentheses are kept in a list, so that a text cannot exhaust the stack.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use marquetry_parquet::prune::{Accepts, Predicate, Quantifier, Ranges, Test};
use marquetry_parquet::schema::{Meaning, Schema};

use super::columns::{Column, Columns, Leaf};
use super::error::{PredicateError, excerpt};
use super::lexer::{Keyword, Kind, Lexer, Token};
use super::literal::{Form, Literal};
use super::number::Operator;

/// Maximum nesting of parentheses: what walks a predicate recurses, and hosts have stacks of 128 KiB. Types and JSON
/// may be as deep.
const DEPTH_MAX: usize = 64;

/// Parses the tokens of a text.
pub(super) struct Parser<'a> {
    text: &'a str,
    lexer: Lexer<'a>,
    /// The one that was not taken yet.
    token: Token,
    columns: Columns<'a>,
}

/// What is between parentheses, or the whole text, up to where it is parsed.
struct Group {
    /// The conjunctions that are complete.
    any: Vec<Predicate>,
    /// The conditions of the last one.
    all: Vec<Predicate>,
    is_negated: bool,
    /// Its parenthesis.
    open: Token,
}

impl Group {
    fn of(open: Token, is_negated: bool) -> Group {
        Group { any: Vec::new(), all: Vec::new(), is_negated, open }
    }

    fn add(&mut self, condition: Predicate, is_negated: bool) {
        match if is_negated { condition.not() } else { condition } {
            Predicate::And(parts) => self.all.extend(parts),
            other => self.all.push(other),
        }
    }

    fn end_conjunction(&mut self) {
        let mut all = core::mem::take(&mut self.all);
        let only = if all.len() == 1 { all.pop() } else { None };
        match only.unwrap_or(Predicate::And(all)) {
            Predicate::Or(parts) => self.any.extend(parts),
            other => self.any.push(other),
        }
    }

    fn end(mut self) -> Predicate {
        self.end_conjunction();
        let only = if self.any.len() == 1 { self.any.pop() } else { None };
        only.unwrap_or(Predicate::Or(self.any))
    }
}

type Parsed<T> = Result<T, PredicateError>;

impl<'a> Parser<'a> {
    pub(super) fn of(text: &'a str, schema: &'a Schema) -> Parsed<Parser<'a>> {
        let mut lexer = Lexer::of(text);
        let token = lexer.next()?;
        Ok(Parser { text, lexer, token, columns: Columns::of(schema) })
    }

    /// The predicate that the whole text is.
    pub(super) fn predicate(mut self) -> Parsed<Predicate> {
        let (mut around, mut group) = (Vec::new(), Group::of(self.token, false));
        loop {
            let mut is_negated = false;
            while self.take(Kind::Keyword(Keyword::Not))? {
                is_negated = !is_negated;
            }
            if self.token.kind == Kind::Open {
                if around.len() == DEPTH_MAX {
                    return Err(self.fail(format!("parentheses are nested more than {DEPTH_MAX} deep")));
                }
                let open = self.advance()?;
                around.push(core::mem::replace(&mut group, Group::of(open, is_negated)));
                continue;
            }
            let condition = self.condition()?;
            group.add(condition, is_negated);
            loop {
                match self.token.kind {
                    Kind::Keyword(Keyword::And) => {}
                    Kind::Keyword(Keyword::Or) => group.end_conjunction(),
                    Kind::Close => {
                        let Some(outer) = around.pop() else {
                            return Err(self.fail("there is no parenthesis that it closes".into()));
                        };
                        let inner = core::mem::replace(&mut group, outer);
                        let is_negated = inner.is_negated;
                        group.add(inner.end(), is_negated);
                        self.advance()?;
                        continue;
                    }
                    Kind::End if around.is_empty() => return Ok(group.end()),
                    Kind::End => {
                        return Err(PredicateError {
                            at: group.open.at(),
                            message: "the parenthesis is not closed".into(),
                        });
                    }
                    _ if around.is_empty() => return Err(self.expected("AND, OR or the end")),
                    _ => return Err(self.expected("AND, OR or )")),
                }
                self.advance()?;
                break;
            }
        }
    }

    fn condition(&mut self) -> Parsed<Predicate> {
        let first = self.token;
        if first.kind == Kind::Name {
            let column = self.column()?;
            return self.test(&column);
        }
        let Some(literal) = self.maybe_literal()? else { return Err(self.expected("a column")) };
        let Kind::Operator(operator) = self.token.kind else {
            return match literal.form {
                Form::Boolean(true) => Ok(Predicate::And(Vec::new())),
                Form::Boolean(false) => Ok(Predicate::Or(Vec::new())),
                _ => Err(self.expected(&format!("a comparison of {}", excerpt(literal.source)))),
            };
        };
        let operator_at = self.advance()?;
        if self.token.kind != Kind::Name {
            let hint = match literal.form {
                Form::Text => " (a column's name is put in double quotes, or in none)",
                _ => "",
            };
            return Err(self.expected(&format!("a column on either side{hint}")));
        }
        let column = self.column()?;
        let leaf = column.leaf()?;
        self.compare(&column, leaf, operator.mirrored(), operator_at, &literal)
    }

    /// What follows a column.
    fn test(&mut self, column: &Column<'a>) -> Parsed<Predicate> {
        if let Kind::Operator(operator) = self.token.kind {
            let leaf = column.leaf()?;
            let operator_at = self.advance()?;
            let literal = self.literal()?;
            return self.compare(column, leaf, operator, operator_at, &literal);
        }
        let is_negated = self.take(Kind::Keyword(Keyword::Not))?;
        let Kind::Keyword(keyword @ (Keyword::In | Keyword::Between | Keyword::Like | Keyword::Is)) =
            self.token.kind
        else {
            return if is_negated { Err(self.expected("IN, BETWEEN or LIKE")) } else { self.truth(column) };
        };
        if keyword == Keyword::Is {
            return if is_negated { Err(self.expected("IN, BETWEEN or LIKE")) } else { self.nulls(column) };
        }
        let leaf = column.leaf()?;
        let token = self.advance()?;
        let ranges = match keyword {
            Keyword::In => self.one_of(leaf)?,
            Keyword::Like => self.like(column, leaf, token)?,
            _ => {
                column.check_order(leaf, token)?;
                let first = self.literal()?.ranges(leaf, Operator::AtLeast)?;
                self.expect(Kind::Keyword(Keyword::And), "AND, between the two bounds,")?;
                let last = self.literal()?.ranges(leaf, Operator::AtMost)?;
                first.intersection(&last)
            }
        };
        let test = Test::accepting(leaf.leaf, ranges);
        Ok(Predicate::Test(if is_negated { opposite(&test, leaf.slot) } else { test }))
    }

    fn compare(
        &self,
        column: &Column<'a>,
        leaf: Leaf,
        operator: Operator,
        operator_at: Token,
        literal: &Literal<'a>,
    ) -> Parsed<Predicate> {
        if !matches!(operator, Operator::Equal | Operator::NotEqual) {
            column.check_order(leaf, operator_at)?;
        }
        Ok(Predicate::Test(Test::accepting(leaf.leaf, literal.ranges(leaf, operator)?)))
    }

    /// Literals in parentheses.
    fn one_of(&mut self, leaf: Leaf) -> Parsed<Ranges> {
        self.expect(Kind::Open, "(")?;
        let mut sets = Vec::new();
        if !self.take(Kind::Close)? {
            loop {
                sets.push(self.literal()?.ranges(leaf, Operator::Equal)?);
                if !self.take(Kind::Comma)? {
                    self.expect(Kind::Close, "a comma or )")?;
                    break;
                }
            }
        }
        Ok(Ranges::union(sets, leaf.comparison()))
    }

    /// A text that may end in `%`.
    fn like(&mut self, column: &Column<'a>, leaf: Leaf, like: Token) -> Parsed<Ranges> {
        if !leaf.meaning.is_text() && leaf.meaning != Meaning::Null {
            let message =
                format!("LIKE is for text, and {} is {}", excerpt(column.written), leaf.type_name());
            return Err(PredicateError { at: like.at(), message });
        }
        let pattern = self.literal()?;
        if leaf.meaning == Meaning::Null || pattern.form != Form::Text {
            return pattern.ranges(leaf, Operator::Equal);
        }
        let text = pattern.text();
        let prefix = text.trim_end_matches('%');
        if let Some(wildcard) = prefix.chars().find(|c| matches!(c, '%' | '_')) {
            let stands = if wildcard == '_' { "any character" } else { "any text" };
            let message = format!(
                "{wildcard} stands for {stands}: only a % at the end is supported, for what begins with a text"
            );
            return Err(PredicateError { at: pattern.at, message });
        }
        match prefix.len() == text.len() {
            true => pattern.ranges(leaf, Operator::Equal),
            false => Ok(Ranges::with_prefix(prefix.as_bytes().to_vec().into())),
        }
    }

    /// `IS NULL` and `IS NOT NULL`.
    fn nulls(&mut self, column: &Column<'a>) -> Parsed<Predicate> {
        self.advance()?;
        let is_negated = self.take(Kind::Keyword(Keyword::Not))?;
        let wanted = if is_negated { "NULL" } else { "NULL or NOT NULL" };
        self.expect(Kind::Keyword(Keyword::Null), wanted)?;
        let slot = column.field.slot;
        let definition = column.field.shape.definition;
        let accepts = Accepts::Nulls { slot, definition, are_wanted: true };
        let test = Test { leaf: column.first_leaf()?, quantifier: Quantifier::Any, accepts };
        Ok(Predicate::Test(if is_negated { opposite(&test, slot) } else { test }))
    }

    /// A column alone, which is true or false.
    fn truth(&mut self, column: &Column<'a>) -> Parsed<Predicate> {
        let leaf = column.leaf()?;
        if leaf.meaning != Meaning::Boolean {
            let (name, type_name) = (excerpt(column.written), leaf.type_name());
            return Err(self.expected(&format!("a comparison of {name}, which is {type_name},")));
        }
        Ok(Predicate::Test(Test::accepting(leaf.leaf, Ranges::of_keys(1, 1))))
    }

    fn column(&mut self) -> Parsed<Column<'a>> {
        let token = self.advance()?;
        self.columns.find(self.source(token), token.at())
    }

    fn literal(&mut self) -> Parsed<Literal<'a>> {
        if let Some(literal) = self.maybe_literal()? {
            return Ok(literal);
        }
        if self.token.kind == Kind::Name {
            let name = excerpt(self.source(self.token).trim_matches('"'));
            return Err(self.expected(&format!("a literal (as text, '{name}' in single quotes)")));
        }
        Err(self.expected("a literal"))
    }

    fn maybe_literal(&mut self) -> Parsed<Option<Literal<'a>>> {
        let form = match self.token.kind {
            Kind::Number => Form::Number,
            Kind::Quoted | Kind::Dollars => Form::Text,
            Kind::Blob => Form::Blob,
            Kind::Uuid => Form::Uuid,
            Kind::Keyword(Keyword::True) => Form::Boolean(true),
            Kind::Keyword(Keyword::False) => Form::Boolean(false),
            Kind::Keyword(Keyword::Null) => Form::Null,
            _ => return Ok(None),
        };
        let token = self.advance()?;
        Ok(Some(Literal { form, source: self.source(token), at: token.at() }))
    }

    /// Takes the next token, which is returned.
    fn advance(&mut self) -> Parsed<Token> {
        let next = self.lexer.next()?;
        Ok(core::mem::replace(&mut self.token, next))
    }

    fn take(&mut self, kind: Kind) -> Parsed<bool> {
        let is_there = self.token.kind == kind;
        if is_there {
            self.advance()?;
        }
        Ok(is_there)
    }

    fn expect(&mut self, kind: Kind, what: &str) -> Parsed<()> {
        if self.take(kind)? { Ok(()) } else { Err(self.expected(what)) }
    }

    fn source(&self, token: Token) -> &'a str {
        self.text.get(token.at()).unwrap_or("")
    }

    fn expected(&self, what: &str) -> PredicateError {
        let found = self.source(self.token);
        self.fail(match self.token.kind {
            Kind::End => format!("{what} is missing at the end"),
            Kind::Keyword(_) => {
                let hint = format!("{what} is expected, not the keyword {}", found.to_ascii_uppercase());
                let is_name = what.contains("column");
                if is_name { hint + "; a column of this name is put in double quotes" } else { hint }
            }
            _ => format!("{what} is expected, not {}", excerpt(found)),
        })
    }

    /// An error at the next token.
    fn fail(&self, message: String) -> PredicateError {
        PredicateError { at: self.token.at(), message }
    }
}

/// The opposite of a test. A field that is in no list has one value a row, of which any is each.
fn opposite(test: &Test, slot: u16) -> Test {
    let quantifier = if slot == 0 { Quantifier::Any } else { Quantifier::All };
    Test { quantifier, ..test.not() }
}
