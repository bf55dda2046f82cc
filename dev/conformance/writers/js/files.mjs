// Writes Parquet files with hyparquet-writer, parquetjs and its fork @dsnp/parquetjs, into a folder each of OUT.
//
//   node files.mjs OUT
import { mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { brotliCompressSync, gzipSync } from 'node:zlib'
import { parquetWriteBuffer } from 'hyparquet-writer'

const require = createRequire(import.meta.url)
const out = process.argv[2]
const ROWS = 50

const column = value => Array.from({ length: ROWS }, (_, row) => value(row))
const some = (count, value) => Array.from({ length: count }, (_, at) => value(at))
const notWritten = (name, error) => console.log(`not written: ${name}: ${String(error.message ?? error).slice(0, 200)}`)

// --- hyparquet-writer

function hyparquet(name, options) {
  try {
    writeFileSync(`${out}/hyparquet-writer/${name}.parquet`, Buffer.from(parquetWriteBuffer(options)))
  } catch (error) {
    notWritten(`hyparquet-writer/${name}`, error)
  }
}

const flat = [
  { name: 'b', data: column(row => row % 3 === 0), type: 'BOOLEAN' },
  { name: 'i', data: column(row => row * 1000 - 7), type: 'INT32' },
  { name: 'io', data: column(row => (row % 3 ? row : null)), type: 'INT32' },
  { name: 'l', data: column(row => BigInt(row) * 123456789012345n), type: 'INT64' },
  { name: 'f', data: column(row => row / 3), type: 'FLOAT' },
  { name: 'd', data: column(row => Math.sqrt(row)), type: 'DOUBLE' },
  { name: 's', data: column(row => 'text ' + (row % 7)), type: 'STRING' },
  { name: 'so', data: column(row => (row % 4 ? undefined : 'ü' + row)), type: 'STRING' },
  { name: 'bin', data: column(row => new Uint8Array([row, row + 1])), type: 'BYTE_ARRAY' },
  { name: 'ts', data: column(row => new Date(row * 1e9)), type: 'TIMESTAMP' },
  { name: 'json', data: column(row => ({ a: row, b: [row] })), type: 'JSON' },
  { name: 'uuid', data: column(row => '61f0c404-5cb3-11e7-907b-a6006ad3dba' + (row % 10)), type: 'UUID' },
  { name: 'f16', data: column(row => row / 4), type: 'FLOAT16' },
  { name: 'nulls', data: column(() => null), type: 'INT32' },
]

/** A column of every type in every encoding that takes it, without nulls and with. */
function encodings() {
  const types = [
    ['INT32', row => row * row - 99], ['INT64', row => BigInt(row) ** 5n], ['DOUBLE', row => row / 7],
    ['FLOAT', row => row / 8], ['STRING', row => 'prefix ' + row], ['BOOLEAN', row => row % 5 > 2],
  ]
  const names = ['PLAIN', 'RLE_DICTIONARY', 'DELTA_BINARY_PACKED', 'BYTE_STREAM_SPLIT', 'DELTA_LENGTH_BYTE_ARRAY',
    'DELTA_BYTE_ARRAY', 'RLE']
  const columns = []
  for (const encoding of names)
    for (const [type, value] of types)
      for (const nulls of [false, true]) {
        const data = column(row => (nulls && row % 3 === 0 ? null : value(row)))
        const one = { name: `${type}_${encoding}${nulls ? '_nulls' : ''}`.toLowerCase(), type, encoding, data }
        try {
          parquetWriteBuffer({ columnData: [one] })
          columns.push(one)
        } catch {
          // A type that this encoding cannot hold.
        }
      }
  return columns
}

function withHyparquet() {
  const compressors = { GZIP: bytes => gzipSync(bytes), BROTLI: bytes => brotliCompressSync(bytes) }
  for (const codec of ['UNCOMPRESSED', 'SNAPPY', 'GZIP', 'BROTLI'])
    hyparquet(`flat_${codec.toLowerCase()}`, { columnData: flat, codec, compressors })
  hyparquet('found_types', { columnData: [
    { name: 'a', data: column(row => row) },
    { name: 'mixed', data: column(row => (row % 2 ? row : row / 2)) },
    { name: 'object', data: column(row => ({ x: row, y: ['q', row] })) },
    { name: 'array', data: column(row => [row, row + 1]) },
  ] })
  hyparquet('row_groups', { columnData: flat, rowGroupSize: 7 })
  hyparquet('row_groups_of_several_sizes', { columnData: flat, rowGroupSize: [1, 20], pageSize: 50 })
  hyparquet('no_statistics', { columnData: flat, statistics: false, kvMetadata: [{ key: 'k', value: 'v' }] })
  hyparquet('no_rows', { columnData: flat.map(one => ({ ...one, data: [] })) })
  hyparquet('encodings', { columnData: encodings() })
  hyparquet('encodings_pages', { columnData: encodings(), pageSize: 40 })
  const schema = [
    { name: 'root', num_children: 3 },
    { name: 'list', repetition_type: 'OPTIONAL', num_children: 1, converted_type: 'LIST' },
    { name: 'list', repetition_type: 'REPEATED', num_children: 1 },
    { name: 'element', repetition_type: 'OPTIONAL', type: 'INT32' },
    { name: 'm', repetition_type: 'OPTIONAL', num_children: 1, converted_type: 'MAP' },
    { name: 'key_value', repetition_type: 'REPEATED', num_children: 2 },
    { name: 'key', repetition_type: 'REQUIRED', type: 'BYTE_ARRAY', converted_type: 'UTF8' },
    { name: 'value', repetition_type: 'OPTIONAL', type: 'DOUBLE' },
    { name: 's', repetition_type: 'OPTIONAL', num_children: 2 },
    { name: 'x', repetition_type: 'REQUIRED', type: 'INT32' },
    { name: 'y', repetition_type: 'OPTIONAL', num_children: 1, converted_type: 'LIST' },
    { name: 'list', repetition_type: 'REPEATED', num_children: 1 },
    { name: 'element', repetition_type: 'OPTIONAL', type: 'BYTE_ARRAY', converted_type: 'UTF8' },
  ]
  const columnData = [
    { name: 'list', data: column(row => (row % 5 ? some(row % 4, at => (at % 2 ? null : at)) : null)) },
    { name: 'm', data: column(row => (row % 4 ? Object.fromEntries(some(row % 3, at => ['k' + at, at / 2])) : null)) },
    { name: 's', data: column(row => (row % 3 ? { x: row, y: row % 2 ? null : ['a', null, 'c' + row] } : null)) },
  ]
  hyparquet('nested', { schema, columnData })
  hyparquet('nested_pages', { schema, columnData, pageSize: 30, rowGroupSize: 13, codec: 'SNAPPY' })
}

// --- parquetjs and its fork

const columnOf = (type, compression, more = {}) => ({ type, compression, ...more })

function fields(compression) {
  const of = (type, more) => columnOf(type, compression, more)
  return {
    name: of('UTF8'), q: of('INT64', { optional: true }), i: of('INT32'), price: of('DOUBLE'), f: of('FLOAT'),
    at: of('TIMESTAMP_MILLIS'), us: of('TIMESTAMP_MICROS'), day: of('DATE'), t: of('TIME_MILLIS'),
    b: of('BOOLEAN', { optional: true }), bin: of('BYTE_ARRAY'), js: of('JSON'), bs: of('BSON'), u8: of('UINT_8'),
    u64: of('UINT_64'), i96: of('INT96', { optional: true }), fix: of('FIXED_LEN_BYTE_ARRAY', { typeLength: 3 }),
    tags: of('UTF8', { repeated: true }),
    stock: { repeated: true, fields: {
      price: of('DOUBLE'), quantity: of('INT64', { optional: true }), w: of('UTF8', { repeated: true }),
    } },
    deep: { optional: true, fields: { a: of('INT32', { optional: true }), b: { fields: { c: of('UTF8') } } } },
  }
}

function record(row) {
  const record = {
    name: 'n' + (row % 9), i: row, price: row / 3, f: row / 4, at: new Date(row * 1e9), us: row * 1000,
    day: new Date(row * 864e5), t: row, bin: Buffer.from([row]), js: { a: row }, bs: { a: row }, u8: row, u64: row,
    fix: Buffer.from('abc'), tags: some(row % 4, at => 't' + at),
    stock: some(row % 3, at => ({ price: at, ...(at ? { quantity: at } : {}), w: at ? ['x', 'y'] : [] })),
  }
  if (row % 3) record.q = row
  if (row % 5) record.b = row % 2 === 0
  if (row % 4) record.deep = row % 2 ? { a: row, b: { c: 'c' + row } } : { b: { c: 'd' } }
  return record
}

async function withParquetjs(folder, parquet) {
  const twins = []
  for (const compression of ['UNCOMPRESSED', 'SNAPPY', 'GZIP', 'BROTLI', 'LZO'])
    for (const useDataPageV2 of [false, true]) {
      const version = useDataPageV2 ? 'v2' : 'v1'
      const name = `${compression.toLowerCase()}_${version}.parquet`
      const path = `${out}/${folder}/${name}`
      try {
        const schema = new parquet.ParquetSchema(fields(compression))
        const writer = await parquet.ParquetWriter.openFile(schema, path, { useDataPageV2 })
        writer.setRowGroupSize(20)
        for (let row = 0; row < ROWS; row++) await writer.appendRow(record(row))
        await writer.close()
        if (compression === 'LZO') twins.push(`${name} uncompressed_${version}.parquet\n`)
      } catch (error) {
        notWritten(`${folder}/${name}`, error)
        rmSync(path, { force: true })
      }
    }
  writeFileSync(`${out}/${folder}/twins.txt`, twins.join(''))
}

for (const folder of ['hyparquet-writer', 'parquetjs', 'dsnp-parquetjs']) mkdirSync(`${out}/${folder}`, { recursive: true })
withHyparquet()
await withParquetjs('parquetjs', require('parquetjs'))
await withParquetjs('dsnp-parquetjs', require('@dsnp/parquetjs'))
