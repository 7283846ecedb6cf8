/** The operators' page: looks again and again, and takes what is decided to where the command line takes it. */
import { about, ask } from './api.js';
import { Decide } from './decide.js';
import { byId, messageOf, say } from './dom.js';
import { Failed } from './failed.js';
import { showFindings, showVerdict } from './findings.js';
import { asOf } from './format.js';
import { Lanes } from './lanes.js';
import { Message } from './message.js';
import { Pause } from './pause.js';

/** @import { DoctorResponse, StatusResponse } from '../../../shared/operations/responses.ts' */

const everyMs = 10_000;
/** The doctor looks at more, and what it finds changes slowly: with each sixth look, and after each decision. */
const doctorEvery = 6;

const here = await about();
const auto = byId('auto', HTMLInputElement);
let pressed = false;
let looks = 0;
/** @type {Promise<void> | null} */
let looking = null;
/** @type {StatusResponse | null} */
let status = null;
/** @type {DoctorResponse | null} */
let doctor = null;

const decide = new Decide(here, () => {
  void message.load();
  void lookAnew();
});
const message = new Message((wanted) => decide.begin(wanted));
const pause = new Pause(here, (said) => {
  say(byId('notice', HTMLElement), said);
  void lookAnew();
});
const failed = new Failed({
  decide: (wanted) => decide.begin(wanted),
  show: (id) => void message.show({ id }),
});
const lanes = new Lanes({
  pause: (lane) => pause.begin('pause', lane),
  resume: (lane) => pause.begin('resume', lane),
  failed: (lane) => void failed.choose(lane),
});

/** Looks once; a second call meanwhile waits for the same look. */
function look() {
  looking ??= lookOnce().finally(() => {
    looking = null;
  });
  return looking;
}

/** A look that begins after now, the doctor's included. */
async function lookAnew() {
  await looking;
  looks = 0;
  await look();
}

async function lookOnce() {
  const wrong = await part(async () => {
    status = await ask({ command: 'status' });
    lanes.show(status);
    failed.setLanes(status);
    await failed.load();
  });
  // Where the lanes can't be seen the doctor may know why.
  const due = wrong !== '' || looks++ % doctorEvery === 0;
  const undone = due ? await part(lookByDoctor) : '';
  const trouble = wrong || undone;
  const blind = trouble !== '' || status === null || doctor === null;
  showVerdict(status, doctor, blind);
  say(byId('trouble', HTMLElement), trouble);
  document.body.classList.toggle('stale-lanes', wrong !== '');
  document.body.classList.toggle('stale-findings', undone !== '');
  if (!blind) byId('as-of', HTMLElement).textContent = asOf(new Date());
}

async function lookByDoctor() {
  doctor = await ask({ command: 'doctor' });
  showFindings(doctor);
}

/**
 * What went wrong with it, or nothing. One part that fails doesn't keep the other from its turn.
 * @param {() => Promise<void>} work
 */
async function part(work) {
  try {
    await work();
    return '';
  } catch (error) {
    return messageOf(error);
  }
}

/** @param {Element} part */
function setScrollable(part) {
  if (part.scrollWidth > part.clientWidth) part.setAttribute('tabindex', '0');
  else part.removeAttribute('tabindex');
}

/** @param {string} id @param {() => void} submit */
function onSubmit(id, submit) {
  byId(id, HTMLFormElement).addEventListener('submit', (event) => {
    event.preventDefault();
    submit();
  });
}

/** @param {string} id */
const typed = (id) => byId(id, HTMLInputElement).value.trim();

say(byId('where', HTMLElement), here.where);
byId('refresh', HTMLButtonElement).addEventListener('click', () => void lookAnew());
byId('pause-other', HTMLButtonElement).addEventListener('click', () => pause.begin('pause', null));
onSubmit('find-row', () => void message.show({ id: typed('find-id') }));
onSubmit('find-sender', () => {
  void message.show({ source: typed('find-source'), externalMessageId: typed('find-external') });
});
// A table that is wider than the window is scrolled by keyboard too; one that isn't is no stop on the way.
const widths = new ResizeObserver((entries) => {
  for (const { target } of entries) setScrollable(target);
});
for (const wide of document.querySelectorAll('.wide')) widths.observe(wide);
// A row that is made anew between press and release would swallow the click.
document.addEventListener('pointerdown', () => {
  pressed = true;
});
for (const released of ['pointerup', 'pointercancel']) {
  document.addEventListener(released, () => {
    pressed = false;
  });
}
document.addEventListener('visibilitychange', () => {
  if (!document.hidden && auto.checked) void look();
});
setInterval(() => {
  if (auto.checked && !document.hidden && !pressed) void look();
}, everyMs);
await look();
