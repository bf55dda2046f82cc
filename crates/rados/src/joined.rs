//! Arrow IPC streams of the same columns as one: the schema once, the messages of each, one end.

use marquetry_base::{Error, Result};

/// How a message begins; the length of its metadata follows.
const MARK: [u8; 4] = [0xff; 4];
/// How a stream ends.
const END: [u8; 8] = [0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0];

/// Streams that were put together, without the end.
#[derive(Debug, Default)]
pub(crate) struct JoinedStream {
    bytes: Vec<u8>,
    /// The length of the first message, which is the schema, and has no body.
    schema: usize,
}

impl JoinedStream {
    /// Whether there was no stream yet.
    pub(crate) fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// Adds the messages of a stream.
    ///
    /// # Errors
    ///
    /// `Corrupt` if it is none, or has other columns than those before.
    pub(crate) fn add(&mut self, stream: &[u8]) -> Result<()> {
        let none = || Error::corrupt("the object class answered with something that is no Arrow IPC stream");
        let messages = stream.strip_suffix(&END).ok_or_else(none)?;
        let (head, _) = messages.split_first_chunk::<8>().ok_or_else(none)?;
        let [mark @ .., a, b, c, d] = *head;
        let length = usize::try_from(u32::from_le_bytes([a, b, c, d])).unwrap_or(usize::MAX);
        let schema = length.saturating_add(head.len());
        if mark != MARK || schema > messages.len() {
            return Err(none());
        }
        if self.is_empty() {
            self.bytes.extend_from_slice(messages);
            self.schema = schema;
            return Ok(());
        }
        if messages[..schema] != self.bytes[..self.schema] {
            return Err(Error::corrupt("the object class answered with rows of other columns than before"));
        }
        self.bytes.extend_from_slice(&messages[schema..]);
        Ok(())
    }

    /// All of them as one stream.
    pub(crate) fn into_bytes(mut self) -> Vec<u8> {
        self.bytes.extend_from_slice(&END);
        self.bytes
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow_array::{ArrayRef, Int64Array, RecordBatch};
    use arrow_ipc::reader::StreamReader;
    use arrow_ipc::writer::StreamWriter;
    use marquetry_base::ErrorKind;

    use super::*;

    fn stream(column: &str, batches: &[&[i64]]) -> Vec<u8> {
        let batches: Vec<RecordBatch> = batches
            .iter()
            .map(|values| {
                let values: ArrayRef = Arc::new(Int64Array::from(values.to_vec()));
                RecordBatch::try_from_iter([(column, values)]).unwrap()
            })
            .collect();
        let mut writer = StreamWriter::try_new(Vec::new(), &batches[0].schema()).unwrap();
        for batch in &batches {
            writer.write(batch).unwrap();
        }
        writer.into_inner().unwrap()
    }

    #[test]
    fn streams_are_one_after_the_other() {
        let mut joined = JoinedStream::default();
        assert!(joined.is_empty());
        for part in [stream("id", &[&[1, 2], &[3]]), stream("id", &[&[]]), stream("id", &[&[4, 5, 6]])] {
            joined.add(&part).unwrap();
        }
        let all = joined.into_bytes();
        let batches = StreamReader::try_new(all.as_slice(), None).unwrap().map(|batch| {
            let batch = batch.unwrap();
            let values = batch.column(0).as_any().downcast_ref::<Int64Array>().unwrap().values().to_vec();
            assert_eq!(batch.schema().field(0).name(), "id");
            values
        });
        assert_eq!(batches.collect::<Vec<_>>(), [vec![1, 2], vec![3], vec![], vec![4, 5, 6]]);
    }

    #[test]
    fn what_is_no_stream_or_another_ones_is_refused() {
        let whole = stream("id", &[&[7]]);
        for length in [0, 7, 8, 40, whole.len() - 1] {
            let refused = JoinedStream::default().add(&whole[..length]);
            assert_eq!(refused.unwrap_err().kind(), ErrorKind::Corrupt, "{length} bytes");
        }
        let mut joined = JoinedStream::default();
        joined.add(&whole).unwrap();
        assert!(joined.add(&stream("ID", &[&[7]])).unwrap_err().message().contains("other columns"));
        // A length that goes beyond the stream.
        let mut long = whole;
        long[7] = 0x7f;
        assert!(JoinedStream::default().add(&long).is_err());
    }
}
