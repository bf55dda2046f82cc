// The file as a strip: levels from regions to pages, to scale.
const map = {
  from: 0, to: Math.max(file.bytes, 1), level: 2, LEVELS: [{ y: 24, h: 24 }, { y: 52, h: 34 }, { y: 90, h: 62 }], lists: [regions, runs, extents],
  height: 156,
  draw() {
    const { canvas, c, width } = surface('map', this.height);
    this.width = width;
    const span = this.to - this.from;
    const x = (byte) => ((byte - this.from) / span) * width;
    this.axis(c, width, span);
    const drawn = { groups: new Set(), chunks: new Set(), pages: 0, bytes: 0 };
    this.lists.forEach((list, level) => {
      const { y, h } = this.LEVELS[level];
      let pending = null;
      for (let i = holding(list, this.from); i < list.length && list[i].offset < this.to; i += 1) {
        const item = list[i];
        const extent = item.extent || item;
        if (level === 0 && isData(extent)) drawn.groups.add(extent.band);
        if (level === 1 && isData(extent) && extent.cell) drawn.chunks.add(extent.cell.id);
        if (level === 2) { drawn.bytes += item.bytes; if (isPage(item)) drawn.pages += 1; }
        const left = Math.max(x(item.offset), 0);
        const right = Math.min(x(item.offset + item.bytes), width);
        const colour = this.colour(level, item, i);
        // What is narrower than a pixel is drawn with what follows, in the colour of the widest.
        if (right - left < 1.25) {
          if (pending && right - pending.left <= 1.25) {
            pending.right = right;
            if (right - left > pending.widest) Object.assign(pending, { colour, widest: right - left });
          } else {
            this.rest(c, pending, y, h);
            pending = { left, right, colour, widest: right - left };
          }
          continue;
        }
        this.rest(c, pending, y, h);
        pending = null;
        const gap = right - left > 4 ? 1 : right - left > 2.5 ? 0.5 : 0;
        c.fillStyle = colour;
        c.fillRect(left, y, right - left - gap, h);
        if (right - left > 30) label(c, this.text(level, item), left, y + h / 2 + 0.5, right - left - gap, level < 2 && isData(extent) ? style('--ink') : inkOn(colour), colour);
      }
      this.rest(c, pending, y, h);
    });
    const shown = this.shown();
    if (shown) {
      const { y, h } = this.LEVELS[shown.level];
      const left = x(shown.item.offset);
      const right = x(shown.item.offset + shown.item.bytes);
      if (right >= 0 && left <= width) frame(c, Math.max(left, 1), y, Math.min(right, width - 1) - Math.max(left, 1), h);
    }
    if (this.from === 0 && this.to === Math.max(file.bytes, 1)) {
      Object.assign(document.documentElement.dataset, { groups: [...drawn.groups].reduce((sum, id) => sum + (id == null ? 0 : bands[id].count), 0), chunks: [...drawn.chunks].reduce((sum, id) => sum + cells[id].chunks, 0), pages: drawn.pages, bytes: drawn.bytes });
    }
    canvas.setAttribute('aria-label', `The file from byte ${count(Math.floor(this.from))} to ${count(Math.ceil(this.to))}`);
    document.getElementById('range').textContent = span >= file.bytes ? `all ${size(file.bytes)}` : `${size(Math.round(span))} from byte ${count(Math.floor(this.from))} · ${percent(span, file.bytes)} of the file`;
    this.mini();
  },
  rest(c, pending, y, h) {
    if (!pending) return;
    c.fillStyle = flat(pending.colour);
    c.fillRect(pending.left, y, Math.max(pending.right - pending.left, 0.35), h);
  },
  axis(c, width, span) {
    const step = [1, 2, 5].flatMap((one) => [...Array(19).keys()].map((power) => one * 10 ** power)).sort((a, b) => a - b).find((one) => (one / span) * width >= 90) || span;
    c.fillStyle = style('--quiet'); c.strokeStyle = style('--line'); c.lineWidth = 1;
    for (let byte = Math.ceil(this.from / step) * step; byte <= this.to; byte += step) {
      const x = ((byte - this.from) / span) * width;
      c.beginPath(); c.moveTo(x + 0.5, 14); c.lineTo(x + 0.5, 21); c.stroke();
      const text = step < 1000 ? count(byte) : size(byte);
      if (x + c.measureText(text).width < width) c.fillText(text, x + 2, 8);
    }
  },
  colour(level, item, i) {
    const extent = item.extent || item;
    if (level === 2 || !isData(extent)) return extentColour(extent);
    if (level === 0) return style(extent.band % 2 ? '--block-2' : '--block');
    return style(i % 2 ? '--block-2' : '--block');
  },
  text(level, item) {
    const extent = item.extent || item;
    if (level === 0) return isData(extent) ? (extent.band == null ? 'data' : bands[extent.band].label) : KINDS[extent.kind];
    if (level === 1) return extent.cell && isData(extent) ? columns[extent.cell.column].label : isData(extent) ? bands[extent.band].label : KINDS[extent.kind];
    if (item.kind === DATA || item.kind === DATA_V2) return data.encodings[item.encoding] || KINDS[item.kind];
    return KINDS[item.kind];
  },
  mini() {
    const { c, width, height } = surface('mini', 8);
    c.fillStyle = style('--soft'); c.fillRect(0, 0, width, height);
    const isWhole = this.to - this.from >= file.bytes;
    c.fillStyle = style(isWhole ? '--line' : '--accent');
    const left = (this.from / file.bytes) * width;
    c.fillRect(left, 0, Math.max(((this.to - this.from) / file.bytes) * width, 3), height);
  },
  hit(x, y) {
    let level = this.LEVELS.findIndex((one) => y < one.y + one.h + 2);
    if (level < 0) level = 2;
    const byte = this.from + (x / this.width) * (this.to - this.from);
    return this.at(level, byte);
  },
  at(level, byte) {
    const list = this.lists[level];
    const item = list[holding(list, Math.min(Math.max(byte, 0), file.bytes - 1))];
    return item && { ...target(level, item), level, item };
  },
  // What is pinned, as far as it is in the strip.
  shown() {
    if (!pinned) return null;
    if (pinned.item) return { level: pinned.level, item: pinned.item };
    if (pinned.type === 'cell') { const run = runs.find((one) => one.key === `c${pinned.id}`); return run && { level: 1, item: run }; }
    if (pinned.type === 'band') { const region = regions.find((one) => one.key === `b${pinned.id}`); return region && { level: 0, item: region }; }
    return null;
  },
  zoom(factor, centre = (this.from + this.to) / 2) {
    const whole = Math.max(file.bytes, 1);
    const span = Math.min(whole, Math.max((this.to - this.from) * factor, Math.min(32, whole)));
    const share = (centre - this.from) / (this.to - this.from);
    this.go(centre - span * share, span);
  },
  go(from, span) {
    const whole = Math.max(file.bytes, 1);
    this.from = Math.min(Math.max(from, 0), whole - span);
    this.to = this.from + span;
    later(this);
  },
  reveal(item, room = 1.15) {
    const span = Math.min(Math.max(item.bytes * room, 32), file.bytes);
    this.go(item.offset + item.bytes / 2 - span / 2, span);
  },
  step(way) {
    const level = pinned && pinned.item ? pinned.level : this.level;
    const list = this.lists[level];
    let next = pinned && pinned.item ? list.indexOf(pinned.item) + way : holding(list, this.from);
    next = Math.min(Math.max(next, 0), list.length - 1);
    this.pin(level, list[next]);
  },
  pin(level, item) {
    this.level = level;
    pin({ ...target(level, item), level, item });
    if (item.offset + item.bytes < this.from || item.offset > this.to) this.go(item.offset + item.bytes / 2 - (this.to - this.from) / 2, this.to - this.from);
  },
  key(event) {
    const centre = pinned && pinned.item ? pinned.item.offset + pinned.item.bytes / 2 : undefined;
    if (event.key === 'ArrowRight') this.step(1);
    else if (event.key === 'ArrowLeft') this.step(-1);
    else if (event.key === 'ArrowUp' || event.key === 'ArrowDown') {
      const level = Math.min(2, Math.max(0, (pinned && pinned.item ? pinned.level : this.level) + (event.key === 'ArrowUp' ? -1 : 1)));
      const there = this.at(level, pinned && pinned.item ? pinned.item.offset : this.from);
      if (there) this.pin(level, there.item);
    } else if (event.key === '+' || event.key === '=') this.zoom(0.5, centre);
    else if (event.key === '-') this.zoom(2, centre);
    else if (event.key === '0' || event.key === 'Home') this.go(0, Math.max(file.bytes, 1));
    else if (event.key === 'Enter' && pinned && pinned.item) this.reveal(pinned.item);
    else return false;
    return true;
  },
};

// What an item of the strip is about.
function target(level, item) {
  const extent = item.extent || item;
  if (level === 0 && isData(extent) && extent.band != null) return { type: 'band', id: extent.band };
  if (level === 1 && isData(extent) && extent.cell) return { type: 'cell', id: extent.cell.id };
  if (level === 1 && isData(extent) && extent.band != null) return { type: 'band', id: extent.band };
  if (level < 2) return { type: 'run', run: item };
  return { type: 'extent', id: extent.id };
}

function value(item, by) {
  if (by === 'bytes') return item.bytes;
  if (by === 'ratio') return item.bytes > 0 ? item.raw / item.bytes : null;
  if (by === 'nulls') return item.nulls == null || !item.values ? null : item.nulls / item.values;
  if (by === 'pages') return item.extents.some(isPage) ? item.pages : null;
  return null;
}
function isMerged(item) { return Boolean((item.cells ? item : columns[item.column]).merged); }
// Colours of items by a number of theirs; most is what the brightest has.
function colouring(items, by) {
  if (by === 'encoding') return { of: (item) => encodingColour(item.cells ? item.main : mainEncoding(item)) };
  if (by === 'indexes') {
    const steps = ['#b9c3cf', '#c9ae7f', '#8c6d46', '#7b5ea7'];
    return { steps: [['none', steps[0]], ['offset index', steps[1]], ['and column index', steps[2]], ['and Bloom filter', steps[3]]], of: (cell) => steps[cell.bloom ? 3 : cell.columnIndex ? 2 : cell.offsetIndex ? 1 : 0] };
  }
  let most = 0;
  for (const item of items) if (!isMerged(item)) most = Math.max(most, value(item, by) || 0);
  if (by === 'nulls') most = 1;
  if (by === 'ratio') most = Math.max(most, 2);
  // Ratios differ by factors, and a few large chunks must not make all others dark.
  const share = { ratio: (number) => Math.log(Math.max(number, 1)) / Math.log(most), nulls: (number) => number }[by] || ((number) => Math.sqrt(number / (most || 1)));
  return {
    ends: by === 'ratio' ? ['1 ×', `${most.toFixed(1)} ×`] : by === 'nulls' ? ['no nulls', 'all null'] : by === 'bytes' ? ['0 B', size(most)] : ['0 pages', plural(most, 'page')],
    of: (item) => { const number = value(item, by); return number == null ? '#999999' : scaled(share(number)); },
  };
}
function legendOf(id, colours, items) {
  const place = document.getElementById(id);
  place.replaceChildren();
  const entry = (text, colour) => {
    const swatch = make('i', { className: 'swatch' });
    paint(swatch, colour);
    place.append(make('span', {}, swatch, ` ${text}`));
  };
  if (colours.ends) {
    const bar = make('i', { className: 'bar' });
    bar.style.background = `linear-gradient(90deg, ${SCALE.join(',')})`;
    place.append(colours.ends[0], bar, colours.ends[1]);
    if (items.some((item) => colours.of(item) === '#999999')) entry('not known', '#999');
  } else if (colours.steps) {
    for (const [text, colour] of colours.steps) entry(text, colour);
  } else {
    const met = new Set(items.filter((item) => item.bytes > 0).map((item) => (item.cells ? item.main : mainEncoding(item))));
    for (const number of [...met].filter((one) => one != null).sort((a, b) => a - b)) entry(data.encodings[number], encodingColour(number));
  }
}

// Columns as rectangles as large as their bytes (squarified).
const tree = {
  boxes: [],
  draw() {
    const wide = document.getElementById('tree').clientWidth;
    const { c, width, height } = surface('tree', wide < 700 ? 240 : 280);
    const colours = colouring(columns, document.getElementById('tree-by').value);
    const items = columns.filter((one) => one.bytes > 0).sort((a, b) => b.bytes - a.bytes);
    this.boxes = squarify(items, width, height);
    for (const { item, x, y, w, h } of this.boxes) {
      const gap = w > 4 && h > 4 ? 1 : w > 2 && h > 2 ? 0.4 : 0;
      const colour = colours.of(item);
      c.fillStyle = colour;
      c.fillRect(x, y, w - gap, h - gap);
      if (h > 18) label(c, item.label, x, y + Math.min(h / 2, 12), w - gap, inkOn(colour));
      if (h > 36 && w > 60) { c.globalAlpha = 0.8; label(c, `${size(item.bytes)} · ${percent(item.bytes, file.bytes)}`, x, y + 28, w - gap, inkOn(colour)); c.globalAlpha = 1; }
    }
    if (pinned && (pinned.type === 'column' || pinned.type === 'cell')) {
      const id = pinned.type === 'column' ? pinned.id : cells[pinned.id].column;
      const box = this.boxes.find((one) => one.item.id === id);
      if (box) frame(c, box.x + 1, box.y + 1, box.w - 3, box.h - 3);
    }
    legendOf('tree-scale', colours, columns);
  },
  hit(x, y) {
    const box = this.boxes.find((one) => x >= one.x && x < one.x + one.w && y >= one.y && y < one.y + one.h);
    return box && { type: 'column', id: box.item.id };
  },
  key(event) {
    const way = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
    if (event.key === 'Enter' && pinned) { revealPinned(); return true; }
    if (!way || !this.boxes.length) return false;
    const now = this.boxes.findIndex((box) => pinned && pinned.type === 'column' && box.item.id === pinned.id);
    pin({ type: 'column', id: this.boxes[Math.min(Math.max(now + way, 0), this.boxes.length - 1)].item.id });
    return true;
  },
};
function squarify(items, width, height) {
  const total = items.reduce((sum, item) => sum + item.bytes, 0);
  const boxes = [];
  let [x, y, w, h] = [0, 0, width, height];
  let scale = total > 0 ? (width * height) / total : 0;
  for (let i = 0; i < items.length;) {
    const side = Math.min(w, h);
    let sum = 0;
    let worst = Infinity;
    let end = i;
    const largest = items[i].bytes * scale;
    while (end < items.length) {
      const area = items[end].bytes * scale;
      const next = sum + area;
      const worse = Math.max((side * side * largest) / (next * next), (next * next) / (side * side * area));
      if (worse > worst) break;
      worst = worse; sum = next; end += 1;
    }
    const depth = side > 0 ? sum / side : 0;
    let along = 0;
    for (; i < end; i += 1) {
      const length = depth > 0 ? (items[i].bytes * scale) / depth : 0;
      boxes.push(w >= h ? { item: items[i], x, y: y + along, w: depth, h: length } : { item: items[i], x: x + along, y, w: length, h: depth });
      along += length;
    }
    if (w >= h) { x += depth; w -= depth; } else { y += depth; h -= depth; }
    if (w <= 0 || h <= 0) scale = 0;
  }
  return boxes;
}

// Row groups by columns.
const grid = {
  LEFT: 92, TOP: 18,
  draw() {
    const row = Math.max(Math.min(22, 420 / Math.max(bands.length, 1)), 0.5);
    document.getElementById('grid').parentElement.hidden = cells.length === 0;
    const column = (document.getElementById('grid').clientWidth - this.LEFT) / Math.max(columns.length, 1);
    const isSlanted = column >= 12 && column < 76;
    this.TOP = isSlanted ? 78 : 18;
    const { c, width } = surface('grid', Math.max(6, Math.ceil(row * bands.length)) + this.TOP);
    Object.assign(this, { row, column });
    const colours = colouring(cells, document.getElementById('grid-by').value);
    c.fillStyle = style('--quiet');
    if (isSlanted) {
      columns.forEach((one, i) => {
        c.save();
        c.translate(this.LEFT + (i + 0.5) * column - 2, this.TOP - 4);
        c.rotate(-Math.PI / 4);
        label(c, one.label, 0, 0, 92, style('--quiet'));
        c.restore();
      });
    } else if (column >= 76) columns.forEach((one, i) => label(c, one.label, this.LEFT + i * column - 3, 8, column, style('--quiet')));
    else c.fillText(`${plural(columns.length, 'column')}, as in the file →`, this.LEFT + 1, 8);
    for (const cell of cells) {
      const [x, y] = [this.LEFT + cell.column * column, this.TOP + cell.band * row];
      c.fillStyle = colours.of(cell);
      c.fillRect(x, y, column - (column > 3 ? 0.8 : 0), row - (row > 3 ? 0.8 : 0));
    }
    const every = Math.ceil(18 / row);
    for (let i = 0; i < bands.length; i += every) {
      c.fillStyle = style('--quiet');
      c.fillText(`${count(bands[i].first)}`, 2, this.TOP + i * row + Math.min(row, 13) / 2 + 0.5);
    }
    // How many rows each row group has.
    const most = bands.reduce((max, band) => Math.max(max, band.rows), 1);
    bands.forEach((band, i) => {
      c.fillStyle = style('--block');
      c.fillRect(40, this.TOP + i * row, Math.max((band.rows / most) * (this.LEFT - 46), 0.5), row - (row > 3 ? 0.8 : 0));
    });
    if (pinned) {
      if (pinned.type === 'cell') { const cell = cells[pinned.id]; frame(c, this.LEFT + cell.column * column, this.TOP + cell.band * row, column, row); }
      if (pinned.type === 'column') frame(c, this.LEFT + pinned.id * column, this.TOP, column, bands.length * row);
      if (pinned.type === 'band') frame(c, 1, this.TOP + pinned.id * row, width - 2, row);
    }
    legendOf('grid-scale', colours, cells);
  },
  hit(x, y) {
    const band = Math.floor((y - this.TOP) / this.row);
    const column = Math.floor((x - this.LEFT) / this.column);
    if (column >= columns.length || band >= bands.length) return null;
    if (band < 0) return column >= 0 ? { type: 'column', id: column } : null;
    if (column < 0) return { type: 'band', id: band };
    return { type: 'cell', id: band * columns.length + column };
  },
  key(event) {
    const [dx, dy] = { ArrowRight: [1, 0], ArrowLeft: [-1, 0], ArrowDown: [0, 1], ArrowUp: [0, -1] }[event.key] || [0, 0];
    if (event.key === 'Enter' && pinned) { revealPinned(); return true; }
    if ((!dx && !dy) || !cells.length) return false;
    const cell = pinned && pinned.type === 'cell' ? cells[pinned.id] : null;
    const band = Math.min(Math.max((cell ? cell.band : 0) + dy, 0), bands.length - 1);
    const column = Math.min(Math.max((cell ? cell.column : -1) + dx, 0), columns.length - 1);
    pin({ type: 'cell', id: band * columns.length + column });
    return true;
  },
};

// Columns, row by row; only those in view are in the document.
const table = {
  ROW: 26, rows: [],
  fill() {
    const wanted = document.getElementById('filter').value.trim().toLowerCase();
    const rows = columns.filter((one) => !wanted || one.label.toLowerCase().includes(wanted));
    const by = document.getElementById('order').value;
    const nulls = (one) => (one.nulls == null || !one.values ? -1 : one.nulls / one.values);
    if (by === 'bytes') rows.sort((a, b) => b.bytes - a.bytes);
    if (by === 'name') rows.sort((a, b) => (a.label < b.label ? -1 : a.label > b.label ? 1 : 0));
    if (by === 'ratio') rows.sort((a, b) => a.raw / (a.bytes || 1) - b.raw / (b.bytes || 1));
    if (by === 'nulls') rows.sort((a, b) => nulls(b) - nulls(a));
    this.rows = rows;
    this.most = columns.reduce((max, one) => Math.max(max, one.bytes, one.raw), 1);
    document.getElementById('count').textContent = rows.length === columns.length ? plural(rows.length, 'column') : `${count(rows.length)} of ${plural(columns.length, 'column')}`;
    document.getElementById('columns').setAttribute('aria-rowcount', String(rows.length + 1));
    this.draw();
  },
  draw() {
    const scroll = document.getElementById('scroll');
    const room = Math.ceil(Math.max(scroll.clientHeight, 520) / this.ROW) + 8;
    const first = Math.max(0, Math.min(Math.floor(scroll.scrollTop / this.ROW) - 4, this.rows.length - room));
    const shown = this.rows.slice(first, first + room);
    const space = (count) => { const row = make('tr', { className: 'space' }, make('td', { colSpan: 10 })); row.firstChild.style.height = `${count * this.ROW}px`; row.setAttribute('aria-hidden', 'true'); return row; };
    const body = document.querySelector('#columns tbody');
    body.replaceChildren(...(first > 0 ? [space(first)] : []), ...shown.map((one, i) => this.line(one, first + i)), ...(first + shown.length < this.rows.length ? [space(this.rows.length - first - shown.length)] : []));
  },
  line(one, number) {
    const bar = make('span', { className: 'bar2' }, make('i', { className: 'raw' }), make('i', {}));
    bar.children[0].style.width = `${(100 * one.raw) / this.most}%`;
    bar.children[1].style.width = `${(100 * one.bytes) / this.most}%`;
    bar.children[1].style.background = encodingColour(one.main);
    const encodings = make('td', { title: one.encodings.map((id) => data.encodings[id]).join(', ') });
    for (const id of one.encodings.filter((id) => id === one.main || !['RLE', 'BIT_PACKED'].includes(data.encodings[id]))) { const swatch = make('i', { className: 'swatch' }); swatch.style.background = encodingColour(id); encodings.append(swatch, ' '); }
    encodings.append(one.encrypted ? 'encrypted' : one.main == null ? '' : data.encodings[one.main]);
    const cell = (text, className) => make('td', { className: className || '', title: text }, text);
    const row = make('tr', {}, cell(one.label, 'first'), cell(one.logical || one.type, 'type'), make('td', {}, bar), cell(`${size(one.bytes)} · ${percent(one.bytes, file.bytes)}`, 'number'), cell(ratio(one.raw, one.bytes), 'number'), encodings, cell(one.codecs.map((id) => data.codecs[id]).join(', '), 'codec'), cell(one.nulls == null ? '–' : one.nulls === 0 ? '0' : `${count(one.nulls)} (${percent(one.nulls, one.values)})`, 'number'), cell(one.min || '–'), cell(one.max || '–'));
    row.setAttribute('aria-rowindex', String(number + 2));
    if (pinned && pinned.type === 'column' && pinned.id === one.id) { row.className = 'pinned'; row.setAttribute('aria-selected', 'true'); }
    row.column = one;
    return row;
  },
  key(event) {
    const way = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (event.key === 'Enter' && pinned) { revealPinned(); return true; }
    if (!way || !this.rows.length) return false;
    const now = this.rows.findIndex((one) => pinned && pinned.type === 'column' && one.id === pinned.id);
    const next = Math.min(Math.max(now + way, 0), this.rows.length - 1);
    const scroll = document.getElementById('scroll');
    const top = next * this.ROW;
    if (top < scroll.scrollTop) scroll.scrollTop = top;
    if (top + 2 * this.ROW > scroll.scrollTop + scroll.clientHeight) scroll.scrollTop = top + 2 * this.ROW - scroll.clientHeight;
    pin({ type: 'column', id: this.rows[next].id });
    return true;
  },
};
