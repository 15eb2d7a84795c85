// Moves the frames of both rings from network card to switch, through the queue of a port, to their receivers.
(function () {
  'use strict';
  var SVG = 'http://www.w3.org/2000/svg';
  var NODES = [[170, 30], [300, 215], [40, 215]];
  var HUB = [170, 145];
  var tapes = JSON.parse(document.getElementById('tapes').textContent);
  var slider = document.getElementById('when');
  var clock = document.getElementById('clock');
  var end = Number(slider.max);
  var now = 0;
  var timer = null;

  function element(name, attributes, parent) {
    var made = document.createElementNS(SVG, name);
    Object.keys(attributes).forEach(function (key) { made.setAttribute(key, attributes[key]); });
    parent.appendChild(made);
    return made;
  }
  function text(parent, at, words, kind) {
    element('text', { x: at[0], y: at[1], 'class': kind }, parent).textContent = words;
  }
  function between(a, b, share) {
    return [a[0] + (b[0] - a[0]) * share, a[1] + (b[1] - a[1]) * share];
  }
  function port(node) { return between(HUB, NODES[node], 0.3); }

  var panels = tapes.map(function (tape) {
    var svg = element('svg', { viewBox: '0 0 340 262', role: 'img', 'aria-label': tape.title + ' ring' },
      document.getElementById('panels'));
    text(svg, [8, 16], tape.title, 'title');
    NODES.forEach(function (at) { element('line', { x1: HUB[0], y1: HUB[1], x2: at[0], y2: at[1], 'class': 'grid' }, svg); });
    element('rect', { x: HUB[0] - 20, y: HUB[1] - 13, width: 40, height: 26, rx: 4, 'class': 'hub' }, svg);
    text(svg, [HUB[0], HUB[1] + 4], 'switch', 'mid');
    NODES.forEach(function (at, node) {
      element('circle', { cx: at[0], cy: at[1], r: 15, 'class': 'node' }, svg);
      text(svg, [at[0], at[1] + 5], 'ABC'[node], 'mid');
    });
    return { tape: tape, moving: element('g', {}, svg) };
  });

  // A passage: sender, receiver, token or not, number, and the times at which it leaves, crosses, is forwarded, arrives.
  function draw(panel) {
    var group = panel.moving;
    while (group.firstChild) { group.removeChild(group.firstChild); }
    var queued = [0, 0, 0];
    var had = [0, 0, 0];
    var ordered = 0;
    panel.tape.passages.forEach(function (p) {
      if (!p[2] && now >= p[7]) { had[p[1]] += 1; }
      if (!p[2] && now >= p[4]) { ordered = Math.max(ordered, p[3]); }
      if (now < p[4] || now >= p[7]) { return; }
      var at;
      if (now < p[5]) {
        at = between(NODES[p[0]], HUB, (now - p[4]) / (p[5] - p[4]));
      } else if (now < p[6]) {
        var place = port(p[1]);
        at = [place[0] + 9 * queued[p[1]], place[1] - 14];
        queued[p[1]] += 1;
      } else {
        at = between(port(p[1]), NODES[p[1]], (now - p[6]) / (p[7] - p[6]));
      }
      var kind = p[2] ? 'token' : 'packet p' + p[0];
      element('rect', { x: at[0] - 5, y: at[1] - 5, width: 10, height: 10, rx: p[2] ? 5 : 1, 'class': kind }, group);
    });
    NODES.forEach(function (at, node) {
      text(group, [at[0], at[1] + 29], had[node] + ' received', 'mid small');
      var place = port(node);
      if (queued[node]) { text(group, [place[0], place[1] - 24], queued[node] + ' wait', 'mid small'); }
    });
    text(group, [332, 16], 'last number sent: ' + ordered, 'end small');
  }
  function show() {
    slider.value = now;
    clock.textContent = Math.round(now / 1000) + ' us';
    panels.forEach(draw);
  }
  function stop() {
    if (timer !== null) { window.clearInterval(timer); }
    timer = null;
    document.getElementById('play').textContent = 'play';
  }
  document.getElementById('play').addEventListener('click', function () {
    if (timer !== null) { stop(); return; }
    if (now >= end) { now = 0; }
    this.textContent = 'pause';
    timer = window.setInterval(function () {
      now = Math.min(now + 2000, end);
      show();
      if (now >= end) { stop(); }
    }, 40);
  });
  document.getElementById('step').addEventListener('click', function () {
    stop();
    var next = end;
    tapes.forEach(function (tape) {
      tape.passages.forEach(function (p) {
        p.slice(4).forEach(function (time) { if (time > now && time < next) { next = time; } });
      });
    });
    now = next;
    show();
  });
  slider.addEventListener('input', function () {
    stop();
    now = Number(slider.value);
    show();
  });
  show();
}());
