// What is drawn: the data, with names.
const data = JSON.parse(document.getElementById('data').textContent);
const { file, columns, bands } = data;
const KINDS = ['magic', 'data page', 'data page', 'dictionary page', 'other page', 'column chunk', 'column index', 'offset index', 'Bloom filter', 'footer', 'length and magic', 'gap'];
const [MAGIC, DATA, DATA_V2, DICTIONARY, OTHER, CHUNK, COLUMN_INDEX, OFFSET_INDEX, BLOOM, FOOTER, TAIL, GAP] = KINDS.keys();
const known = (number) => (number < 0 ? null : number);

const cells = data.cells.map(([chunks, offset, bytes, raw, values, nulls, codec, encodings, columnIndex, offsetIndex, min, max], id) => ({
  type: 'cell', id, band: Math.floor(id / columns.length), column: id % columns.length, chunks, offset, bytes, raw, values,
  nulls: known(nulls), codec: known(codec), encodings, columnIndex, offsetIndex, bloom: 0, min, max, extents: [], pages: 0,
}));

let at = 0;
const extents = data.extents.map(([kind, bytes, owner, ...rest], id) => {
  const extent = { type: 'extent', id, kind, offset: at, bytes, cell: owner >= 0 ? cells[owner] : null, band: owner <= -2 ? -2 - owner : null, parts: 1 };
  at += bytes;
  if (extent.cell) extent.band = extent.cell.band;
  if (kind >= DATA && kind <= OTHER) {
    const [header, raw, values, nulls, encoding, crc, firstRow, rows, min, max] = rest;
    Object.assign(extent, { header, raw, values, nulls: known(nulls), encoding: known(encoding), crc: crc === 1, firstRow, rows: rows == null ? null : known(rows), min, max });
  } else {
    extent.parts = rest[0];
  }
  const { cell } = extent;
  if (cell) {
    if (isPage(extent) || kind === CHUNK) {
      if (isPage(extent)) extent.number = cell.pages++;
      cell.extents.push(extent);
    } else if (kind === BLOOM) {
      cell.bloom += bytes;
    }
  }
  return extent;
});
const drawnBytes = at;

function isPage(extent) { return extent.kind >= DATA && extent.kind <= OTHER; }
function isData(extent) { return extent.kind >= DATA && extent.kind <= CHUNK; }

// The encoding that most bytes of a cell have; of cells without pages, the one that says most.
function mainEncoding(cell) {
  if (cell.main === undefined) {
    const sums = new Map();
    for (const page of cell.extents) {
      if (page.encoding != null && page.kind !== DICTIONARY) sums.set(page.encoding, (sums.get(page.encoding) || 0) + page.bytes);
    }
    const most = [...sums].sort((a, b) => b[1] - a[1])[0];
    cell.main = most ? most[0] : cell.encodings.length ? cell.encodings[0] : null;
  }
  return cell.main;
}

columns.forEach((column, id) => {
  Object.assign(column, { kind: 'column', id, cells: [] });
  column.label = column.merged ? plural(column.merged, 'smaller column') : column.name === '' ? '(no name)' : column.name;
});
for (const cell of cells) columns[cell.column].cells.push(cell);
bands.forEach((band, id) => Object.assign(band, { id, label: band.count > 1 ? `row groups ${count(band.first)}–${count(band.first + band.count - 1)}` : `row group ${count(band.first)}` }));
for (const column of columns) {
  const sums = new Map();
  for (const cell of column.cells) sums.set(mainEncoding(cell), (sums.get(mainEncoding(cell)) || 0) + cell.bytes);
  const most = [...sums].sort((a, b) => b[1] - a[1])[0];
  column.main = most ? most[0] : null;
}

// The middle level of the map: column chunks, and runs of what belongs to none.
const runs = [];
for (const extent of extents) {
  const key = isData(extent) ? (extent.cell ? `c${extent.cell.id}` : `b${extent.band}`) : `k${extent.kind}`;
  const last = runs[runs.length - 1];
  if (last && last.key === key) {
    last.bytes += extent.bytes;
    last.last = extent.id;
  } else {
    runs.push({ key, offset: extent.offset, bytes: extent.bytes, first: extent.id, last: extent.id, extent });
  }
}
// The top level: row groups, with what lies between their parts (gaps, filters), and regions between them.
const regions = [];
let block = null;
for (const run of runs) {
  const { extent } = run;
  const key = isData(extent) ? `b${extent.band}` : `k${extent.kind}`;
  if (isData(extent) && block && block.key === key) {
    while (regions[regions.length - 1] !== block) regions.pop();
  }
  const last = regions[regions.length - 1];
  if (last && last.key === key) {
    last.bytes = run.offset + run.bytes - last.offset;
    last.last = run.last;
  } else {
    const region = { key, offset: run.offset, bytes: run.bytes, first: run.first, last: run.last, extent };
    regions.push(region);
    if (isData(extent)) block = region;
  }
}

function count(number) { return number.toLocaleString('en-US'); }
function size(bytes) {
  const units = ['B', 'kB', 'MB', 'GB', 'TB', 'PB'];
  if (bytes < 1000) return `${bytes} B`;
  let unit = 1;
  let scale = 1000;
  // Rounded half up, as `marquetry show` has them.
  const tenths = () => Math.round((bytes * 10) / scale);
  while (unit + 1 < units.length && tenths() >= 10000) { unit += 1; scale *= 1000; }
  return `${(tenths() / 10).toFixed(1)} ${units[unit]}`;
}
function exact(bytes) { return bytes < 1000 ? size(bytes) : `${size(bytes)} (${count(bytes)})`; }
// Hundredths, rounded half up, as `marquetry show` has them.
function ratio(raw, bytes) { return bytes > 0 ? `${(Math.round((raw * 100) / bytes) / 100).toFixed(2)} ×` : '–'; }
function percent(part, all) {
  if (!all) return '–';
  const share = (100 * part) / all;
  return part > 0 && share < 0.1 ? '< 0.1 %' : `${share.toFixed(1)} %`;
}
function plural(number, one) { return `${count(number)} ${one}${number === 1 ? '' : 's'}`; }
