//! Reads tokens into the message, by its description.

use std::collections::HashMap;

use prost_reflect::{DynamicMessage, FieldDescriptor, Kind, MapKey, MessageDescriptor, Value};

use super::{
    error::TextError,
    lexer::{Lexer, Token, TokenKind},
    places::{PlaceTree, ValueSeparator},
    scalar, suggest,
};
use crate::{
    Position, RawModelConfig,
    schema::{self, MAX_ELEMENTS, MAX_SOURCE_SIZE},
};

type Result<T> = std::result::Result<T, TextError>;

/// A mark that some editors write at the start of a UTF-8 file. It has no meaning, so the parser skips it.
const BYTE_ORDER_MARK: char = '\u{feff}';

/// Reads a `config.pbtxt`.
///
/// Takes the whole protobuf text format for `inference.ModelConfig`; fills in no defaults and checks no meaning. Extensions and
/// `Any` are refused, since the message has neither. Nesting is bounded by the message types, which do not recur.
///
/// ```
/// let config = galatea_config::parse_text("name: \"simple\" input { name: \"x\" dims: [ 16 ] }")?;
/// assert_eq!(config.input[0].dims, [16]);
/// let error = galatea_config::parse_text("input { nmae: \"x\" }").unwrap_err();
/// assert_eq!(error.to_string(), "1:9: no field `nmae` in ModelInput; did you mean `name`?");
/// # Ok::<(), galatea_config::TextError>(())
/// ```
pub fn parse_text(source: &str) -> Result<RawModelConfig> {
    let start = Position { line: 1, column: 1 };
    if source.len() > MAX_SOURCE_SIZE {
        let message = format!("the configuration has more than {} MiB", MAX_SOURCE_SIZE >> 20);
        return Err(TextError::new(start, message));
    }
    let descriptor = schema::model_config().ok_or_else(|| TextError::new(start, schema::BROKEN))?;
    let message = Parser::new(source, PlaceTree::default()).parse_message(descriptor, None)?;
    message.transcode_to().map_err(|e| TextError::new(start, e.to_string()))
}

/// Returns all mistakes of a text that reading past a mistake can find. It skips an unknown field, a value that does not fit, and
/// a repeated field. A mistake in the braces is the last one.
pub(crate) fn mistakes(source: &str) -> Vec<TextError> {
    let Some(descriptor) = schema::model_config().filter(|_| source.len() <= MAX_SOURCE_SIZE)
    else {
        return parse_text(source).err().into_iter().collect();
    };
    let mut parser = Parser::new(source, PlaceTree::default());
    parser.passed_over = Some(Vec::new());
    let last = parser.parse_message(descriptor, None).err();
    parser.passed_over.into_iter().flatten().chain(last).collect()
}

/// Finds the places of a text's fields. It reads the text again: only mistakes need places, so other texts do not pay for them.
pub(crate) fn find_places(source: &str) -> Option<PlaceTree<'_>> {
    if source.len() > MAX_SOURCE_SIZE {
        return None;
    }
    let mut parser = Parser::new(source, PlaceTree::kept());
    parser.parse_message(schema::model_config()?, None).ok()?;
    Some(parser.places)
}

/// Most mistakes that are looked for in a text.
const MOST_MISTAKES: usize = 50;

const COMMENTS: &str = "comments begin with `#`";

struct Parser<'a> {
    lexer: Lexer<'a>,
    token: Token<'a>,
    /// Members of lists and maps so far.
    element_count: usize,
    places: PlaceTree<'a>,
    /// Mistakes that were skipped; `None` when the first one ends the reading.
    passed_over: Option<Vec<TextError>>,
}

/// An opening brace or bracket, and the one that closes it.
#[derive(Clone, Copy)]
struct OpenBracket {
    open: &'static str,
    close: &'static str,
    position: Position,
}

impl<'a> Parser<'a> {
    fn new(source: &'a str, places: PlaceTree<'a>) -> Self {
        let mut lexer = Lexer::new(source.strip_prefix(BYTE_ORDER_MARK).unwrap_or(source));
        let token = lexer.next();
        Self { lexer, token, element_count: 0, places, passed_over: None }
    }

    fn advance(&mut self) -> Token<'a> {
        std::mem::replace(&mut self.token, self.lexer.next())
    }

    fn take(&mut self, symbol: &str) -> bool {
        let is_there = self.token.is(symbol);
        if is_there {
            self.advance();
        }
        is_there
    }

    fn error(&self, message: impl Into<String>) -> TextError {
        TextError::new(self.token.position, message)
    }

    /// Continues after a mistake if the caller wants all mistakes.
    fn pass_over(&mut self, mistake: TextError) -> Result<()> {
        match &mut self.passed_over {
            Some(mistakes) if mistakes.len() < MOST_MISTAKES => mistakes.push(mistake),
            _ => return Err(mistake),
        }
        Ok(())
    }

    /// Skips a value: the content of braces or brackets, or one token.
    fn skip_value(&mut self) {
        let mut depth = 0_usize;
        while self.token.kind != TokenKind::End {
            match self.token.text {
                "{" | "<" | "[" => depth += 1,
                "}" | ">" | "]" if depth == 0 => return,
                "}" | ">" | "]" => depth -= 1,
                _ => {}
            }
            let skipped = self.advance();
            let goes_on = [skipped, self.token].iter().all(|t| t.kind == TokenKind::Quoted);
            if depth == 0 && !goes_on {
                return;
            }
        }
    }

    fn end_field(&mut self) {
        // Separators are optional, and at most one is taken.
        if !self.take(",") {
            self.take(";");
        }
    }

    /// Reads fields up to the closing bracket of `opening`, or to the end of the text.
    fn parse_message(
        &mut self,
        descriptor: MessageDescriptor,
        opening: Option<OpenBracket>,
    ) -> Result<DynamicMessage> {
        let mut fields = Fields::new(descriptor);
        loop {
            match opening {
                None if self.token.kind == TokenKind::End => break,
                Some(opening) if self.take(opening.close) => break,
                _ => self.parse_field(&mut fields, opening)?,
            }
        }
        Ok(fields.message)
    }

    fn parse_field(&mut self, fields: &mut Fields, opening: Option<OpenBracket>) -> Result<()> {
        let descriptor = fields.message_descriptor();
        let name = self.expect_name(opening, &descriptor)?;
        let Some(field) = descriptor.get_field_by_name(name.text) else {
            let message = format!("no field `{}` in {}", shorten(name.text), descriptor.name());
            let mut error = TextError::new(name.position, message);
            error.hint = suggest::field_hint(name.text, &descriptor);
            self.pass_over(error)?;
            if !self.take(":") {
                self.take("=");
            }
            self.skip_value();
            self.end_field();
            return Ok(());
        };
        fields.claim(&field, name.position).or_else(|mistake| self.pass_over(mistake))?;
        self.parse_colon(&field)?;
        let is_repeated = field.is_list() || field.is_map();
        match self.token {
            bracket if is_repeated && bracket.is("[") => self.parse_list(fields, &field, name)?,
            _ => self.parse_value(fields, &field, ValueSeparator { name, is_listed: false })?,
        }
        self.end_field();
        Ok(())
    }

    fn expect_name(
        &mut self,
        opening: Option<OpenBracket>,
        message: &MessageDescriptor,
    ) -> Result<Token<'a>> {
        if matches!(self.token.kind, TokenKind::Word | TokenKind::Number) {
            return Ok(self.advance());
        }
        Err(match (opening, self.token.kind) {
            (Some(opening), TokenKind::End) => self.unclosed(opening),
            (Some(opening), _) => {
                let OpenBracket { open, close, position } = opening;
                let found = self.token.describe();
                let error =
                    self.error(format!("expected a field name or `{close}`, found {found}"));
                match self.token.kind {
                    TokenKind::Quoted if message.is_map_entry() => {
                        error.with_hint(suggest::entry_hint(&shorten(self.token.text)))
                    }
                    _ if self.token.is("/") => error.with_hint(COMMENTS),
                    TokenKind::Quoted => error.with_hint(format!(
                        "names of fields have no quotes: {}",
                        unquoted(self.token.text)
                    )),
                    _ => error.with_hint(format!("the `{open}` at {position} is still open")),
                }
            }
            (None, _) => self.unexpected_at_top(),
        })
    }

    fn unexpected_at_top(&self) -> TextError {
        let error = self.error(format!("expected a field name, found {}", self.token.describe()));
        match self.token.text {
            "{" if self.lexer.clone().next().kind == TokenKind::Quoted => error.with_hint(
                "this looks like JSON, and the file is in protobuf's text format: write `name: \"m\"`, without braces \
                 around it all and without quotes around names of fields",
            ),
            text if self.token.kind == TokenKind::Quoted => {
                error.with_hint(format!("names of fields have no quotes: {}", unquoted(text)))
            }
            "}" | ">" | "]" => error.with_hint("nothing is open here: one closing too many"),
            "[" => error.with_hint("extensions are not supported"),
            "{" => error.with_hint("write the fields of the model without braces around them"),
            "/" => error.with_hint(COMMENTS),
            "," | ";" => error.with_hint("one separator after a field is enough"),
            _ => error,
        }
    }

    fn unclosed(&self, opening: OpenBracket) -> TextError {
        let OpenBracket { open, close, position } = opening;
        self.error(format!("expected `{close}`, found {}", self.token.describe()))
            .with_hint(format!("the `{open}` at {position} is not closed"))
    }

    /// Reads `:`, which may be missing only before a message.
    fn parse_colon(&mut self, field: &FieldDescriptor) -> Result<()> {
        if self.take(":") || matches!(field.kind(), Kind::Message(_)) {
            return Ok(());
        }
        let found = self.token.describe();
        let error = self.error(format!("expected `:` after `{}`, found {found}", field.name()));
        Err(match self.token.text {
            "=" => error.with_hint("write `:` in place of `=`"),
            "{" | "<" => error.with_hint(format!(
                "`{}` is {}, not a message",
                field.name(),
                scalar::type_name(&field.kind())
            )),
            text if suggest::is_curly_quote(text) => error.with_hint(suggest::CURLY_QUOTES),
            _ => error,
        })
    }

    fn parse_list(
        &mut self,
        fields: &mut Fields,
        field: &FieldDescriptor,
        name: Token<'a>,
    ) -> Result<()> {
        let introduction = ValueSeparator { name, is_listed: true };
        let bracket = self.advance();
        let opening = OpenBracket { open: "[", close: "]", position: bracket.position };
        if self.take(opening.close) {
            let outer = self.places.enter(introduction, bracket);
            self.places.leave(outer);
            return Ok(());
        }
        loop {
            if self.token.kind == TokenKind::End {
                return Err(self.unclosed(opening));
            }
            self.parse_value(fields, field, introduction)?;
            if self.take(opening.close) {
                return Ok(());
            }
            self.expect_comma(opening)?;
        }
    }

    fn expect_comma(&mut self, opening: OpenBracket) -> Result<()> {
        if self.token.kind == TokenKind::End {
            return Err(self.unclosed(opening));
        }
        if !self.take(",") {
            let found = self.token.describe();
            return Err(self
                .error(format!("expected `,` or `]`, found {found}"))
                .with_hint(format!("the `[` at {} is still open", opening.position)));
        }
        if self.token.is("]") {
            return Err(self
                .error("expected a value, found `]`")
                .with_hint("remove the comma before `]`"));
        }
        Ok(())
    }

    fn parse_value(
        &mut self,
        fields: &mut Fields,
        field: &FieldDescriptor,
        introduction: ValueSeparator<'a>,
    ) -> Result<()> {
        if field.is_list() || field.is_map() {
            self.count_element()?;
        }
        let outer = self.places.enter(introduction, self.token);
        let value = match field.kind() {
            Kind::Message(descriptor) => Value::Message(self.parse_braced(field, descriptor)?),
            kind => self.parse_scalar(field, &kind)?,
        };
        self.places.leave(outer);
        fields.store(field, value);
        Ok(())
    }

    fn count_element(&mut self) -> Result<()> {
        self.element_count += 1;
        if self.element_count > MAX_ELEMENTS {
            let text = format!("lists and maps have more than {MAX_ELEMENTS} members together");
            return Err(self.error(text));
        }
        Ok(())
    }

    fn parse_braced(
        &mut self,
        field: &FieldDescriptor,
        descriptor: MessageDescriptor,
    ) -> Result<DynamicMessage> {
        let (open, close) = match self.token {
            token if token.is("{") => ("{", "}"),
            token if token.is("<") => ("<", ">"),
            _ => {
                self.pass_over(self.not_a_message(field, &descriptor))?;
                self.skip_value();
                return Ok(DynamicMessage::new(descriptor));
            }
        };
        let position = self.advance().position;
        self.parse_message(descriptor, Some(OpenBracket { open, close, position }))
    }

    fn not_a_message(&self, field: &FieldDescriptor, message: &MessageDescriptor) -> TextError {
        let name = field.name();
        let error =
            self.error(format!("expected `{{` for `{name}`, found {}", self.token.describe()));
        match self.token {
            token if token.is("[") => error.with_hint(suggest::list_hint(name, message)),
            token if suggest::is_yaml_dash(token.text) => error.with_hint(suggest::LOOKS_LIKE_YAML),
            token => error.with_hint(suggest::message_hint(name, message, token.text)),
        }
    }

    fn parse_scalar(&mut self, field: &FieldDescriptor, kind: &Kind) -> Result<Value> {
        if matches!(kind, Kind::String) && self.token.kind == TokenKind::Quoted {
            return self.parse_string();
        }
        match scalar::parse(field, kind, &self.token) {
            Ok(value) => {
                self.advance();
                Ok(value)
            }
            // Behind a sign that begins no value, such as a curly quote, the end of the value is unknown.
            Err(mistake) if self.token.kind == TokenKind::Symbol => Err(mistake),
            Err(mistake) => {
                self.pass_over(mistake)?;
                self.skip_value();
                Ok(Value::default_value(kind))
            }
        }
    }

    /// Reads a string. Adjacent literals are one string.
    fn parse_string(&mut self) -> Result<Value> {
        let position = self.token.position;
        let mut bytes = Vec::new();
        while self.token.kind == TokenKind::Quoted {
            bytes.extend(scalar::parse_literal(&self.token)?);
            self.advance();
        }
        match String::from_utf8(bytes) {
            Ok(text) => Ok(Value::String(text)),
            Err(_) => Err(TextError::new(position, "the string is not valid UTF-8")),
        }
    }
}

/// Suggests the spelling of a name that was quoted.
fn unquoted(text: &str) -> String {
    format!("write `{}:`", shorten(text.trim_matches(['"', '\''])))
}

fn shorten(name: &str) -> String {
    match name.char_indices().nth(60) {
        Some((end, _)) => format!("{}...", &name[..end]),
        None => name.to_owned(),
    }
}

/// A message being filled, and the positions of its given fields.
struct Fields {
    message: DynamicMessage,
    given: HashMap<u32, Position>,
}

impl Fields {
    fn new(descriptor: MessageDescriptor) -> Self {
        Self { message: DynamicMessage::new(descriptor), given: HashMap::new() }
    }

    fn message_descriptor(&self) -> MessageDescriptor {
        prost_reflect::ReflectMessage::descriptor(&self.message)
    }

    /// Refuses a second value for a singular field, and a second member of a oneof.
    ///
    /// A scalar without presence may be given again while it has its default: the format cannot distinguish that from a missing
    /// value.
    fn claim(&mut self, field: &FieldDescriptor, position: Position) -> Result<()> {
        if field.is_list() || field.is_map() {
            return Ok(());
        }
        if let Some(other) = self.other_member(field) {
            let message = format!("`{}` cannot stand beside `{}`", field.name(), other.name());
            return Err(self.conflict(message, &other, position));
        }
        if self.message.has_field(field) {
            let owner = self.message_descriptor();
            let message = format!("`{}` is given twice in {}", field.name(), owner.name());
            return Err(self.conflict(message, field, position));
        }
        self.given.insert(field.number(), position);
        Ok(())
    }

    fn other_member(&self, field: &FieldDescriptor) -> Option<FieldDescriptor> {
        let oneof = field.containing_oneof()?;
        oneof.fields().find(|f| f != field && self.message.has_field(f))
    }

    fn conflict(&self, message: String, with: &FieldDescriptor, at: Position) -> TextError {
        let error = TextError::new(at, message);
        match self.given.get(&with.number()) {
            Some(first) => error.with_hint(format!("`{}` was given at {first}", with.name())),
            None => error,
        }
    }

    fn store(&mut self, field: &FieldDescriptor, value: Value) {
        if !field.is_list() && !field.is_map() {
            self.message.set_field(field, value);
            return;
        }
        match (self.message.get_field_mut(field), value) {
            (Value::List(values), value) => values.push(value),
            (Value::Map(entries), Value::Message(entry)) => {
                if let Some((key, value)) = split_entry(&entry) {
                    entries.insert(key, value);
                }
            }
            _ => {}
        }
    }
}

/// Returns key and value of a map entry; a missing one has its default.
fn split_entry(entry: &DynamicMessage) -> Option<(MapKey, Value)> {
    let key = entry.get_field_by_name("key")?.into_owned().into_map_key()?;
    let value = entry.get_field_by_name("value")?.into_owned();
    Some((key, value))
}
