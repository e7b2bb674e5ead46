package tui

import (
	"context"
	"io"
	"os"
	"time"

	tea "github.com/charmbracelet/bubbletea"

	"agentop/tui/view"
)

// model is the state of the screen. Bubble Tea calls its methods from one
// goroutine.
type model struct {
	ctx     context.Context // of the commands; done when the screen ends
	source  Source
	out     io.Writer // for what is no part of a frame
	now     func() time.Time
	painter *painter // nil in tests
	parent  int      // process that started this one
	orphan  bool     // it is gone

	width, height int
	screen        view.Screen
	known         known
	base          view.Status // as the proxy told it last
	link          link
	chosen        view.Key // the conversation under the cursor, whatever its row
	hasChosen     bool
	notices       []notice
	undo          *undo
	ask           int                   // number of the last question of a pane
	checks        map[string]view.Check // of the switch pane, by server
	pointing      *planMsg              // the question on the screen, nil for none
	dirty         bool
	asked         time.Time // when the status was asked last
	logLoaded     bool
	back          view.Body // where esc leads from a pane over another
}

// notice is a sentence on the screen until a time.
type notice struct {
	view.Notice
	until time.Time
}

// The messages.
type (
	tickMsg  struct{}
	batchMsg struct {
		of    *inbox
		batch batch
	}
	endedMsg struct {
		of  *inbox
		err error
	}
	statusMsg struct{ status view.Status }
	logMsg    struct{ list []view.Request }
	failedMsg struct{ err error }
	wroteMsg  struct{ text string }
	setupsMsg struct{ list []view.Setup }
	toldMsg   struct{ text string }
)

func newModel(ctx context.Context, o Options) *model {
	if o.Now == nil {
		o.Now = time.Now
	}
	m := &model{ctx: ctx, source: o.Source, out: o.Out, now: o.Now, parent: os.Getppid()}
	m.screen.Theme = view.NewTheme(o.Colour, o.ASCII)
	m.screen.Link.Start = o.StartCommand
	_, m.screen.Link.CanKey = o.Source.(Starter)
	m.screen.Log.Follow = true
	m.screen.Tests = map[string]view.Check{}
	if o.Hello != "" {
		m.say(o.Hello)
	}
	return m
}

// Init implements tea.Model.
func (m *model) Init() tea.Cmd { return tea.Batch(m.connect(), tick()) }

// tick keeps the times on the screen right.
func tick() tea.Cmd { return tea.Tick(time.Second, func(time.Time) tea.Msg { return tickMsg{} }) }

// Update implements tea.Model: it names a method for each message.
func (m *model) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	cmd := m.handle(msg)
	m.arrange()
	return m, cmd
}

func (m *model) handle(msg tea.Msg) tea.Cmd {
	switch msg := msg.(type) {
	case tea.WindowSizeMsg:
		m.width, m.height = msg.Width, msg.Height
		if m.width == 0 && m.height == 0 { // a terminal that does not know its size
			m.width, m.height = 80, 24
		}
		m.afresh()
	case tea.ResumeMsg:
		if m.painter != nil {
			m.painter.enter()
		}
	case tea.KeyMsg:
		return m.keys(msg)
	case tickMsg:
		return m.tick()
	case connectedMsg, endedMsg, batchMsg, retryMsg, startedMsg:
		return m.linkMsg(msg)
	case statusMsg:
		m.takeStatus(msg.status)
	case logMsg:
		m.takeLog(msg.list)
	case setupsMsg:
		m.screen.Setups = msg.list
	case switchedMsg, checkMsg:
		return m.switchMsg(msg)
	case priceMsg, movedMsg:
		return m.moveMsg(msg)
	case testMsg, removedMsg:
		m.serverMsg(msg)
	case failedMsg:
		m.fail(msg.err)
	case wroteMsg:
		m.say(msg.text)
	case planMsg:
		m.askPoint(msg)
	case toldMsg:
		m.say(msg.text)
		return m.askSetups()
	}
	return nil
}

// afresh has every line painted: what is on the terminal is not known.
func (m *model) afresh() {
	if m.painter != nil {
		m.painter.afresh()
	}
}

// suspend gives the terminal back and stops the process until it is continued.
func (m *model) suspend() tea.Cmd {
	if m.painter != nil {
		m.painter.leave()
	}
	return tea.Suspend
}

// View implements tea.Model. Bubble Tea calls it after each message; what it
// gives goes to the painter, since Bubble Tea's own renderer is off.
func (m *model) View() string {
	text := m.screen.Render(m.width, m.height, m.now())
	if m.painter != nil {
		m.painter.frame(text)
	}
	return text
}

// tick drops old notices and asks for what is in no event. It ends the screen
// when whoever started it was killed: the next in line then uses the terminal.
func (m *model) tick() tea.Cmd {
	if os.Getppid() != m.parent {
		m.orphan = true
		return tea.Quit
	}
	now := m.now()
	kept := m.notices[:0]
	for _, n := range m.notices {
		if now.Before(n.until) {
			kept = append(kept, n)
		}
	}
	m.notices = kept
	if m.screen.Link.State == view.LinkUp {
		m.screen.Link.AsOf = now
	}
	if m.screen.Link.State == view.LinkUp && (m.dirty || now.Sub(m.asked) >= statusEvery) {
		m.dirty, m.asked = false, now
		return tea.Batch(tick(), m.askStatus())
	}
	return tick()
}

// statusEvery is how often the status is asked when nothing happens; else it
// is asked each second.
const statusEvery = 5 * time.Second

// How long a command may wait for the proxy, and how long a notice stays.
const (
	askFor    = 10 * time.Second
	noticeFor = 12 * time.Second
	alarmFor  = 30 * time.Second
)

// call makes a command of a question to the source, with a time limit.
func (m *model) call(ask func(ctx context.Context) tea.Msg) tea.Cmd {
	parent := m.ctx
	return guarded(func() tea.Msg {
		ctx, cancel := context.WithTimeout(parent, askFor)
		defer cancel()
		return ask(ctx)
	})
}

func (m *model) askStatus() tea.Cmd {
	return m.call(func(ctx context.Context) tea.Msg {
		status, err := m.source.Status(ctx)
		if err != nil {
			return nil // the stream's end tells it
		}
		return statusMsg{status}
	})
}

func (m *model) askLog() tea.Cmd {
	return m.call(func(ctx context.Context) tea.Msg {
		list, err := m.source.Requests(ctx, maxLog/4)
		if err != nil {
			return failedMsg{err}
		}
		return logMsg{list}
	})
}

// takeStatus takes over what the proxy says of itself.
func (m *model) takeStatus(s view.Status) {
	m.base = s
	m.asked = m.now()
}

// say shows a sentence for a while, in place of those before.
func (m *model) say(text string) { m.note(view.Notice{Text: text}, noticeFor) }

// fail shows an error.
func (m *model) fail(err error) { m.note(view.Notice{Text: sentence(err), Bad: true}, alarmFor) }

func (m *model) note(n view.Notice, d time.Duration) {
	m.notices = []notice{{n, m.now().Add(d)}}
}

// arrange makes the screen's data of what is known: after every message.
func (m *model) arrange() {
	s := &m.screen
	now := m.now()
	s.Status = m.base
	s.Status.Servers = append([]view.Server(nil), m.base.Servers...)
	s.Status.Agents = append([]view.Agent(nil), m.base.Agents...)
	s.Loads = m.known.loads(&s.Status, now)
	s.Known = len(m.known.all)
	s.Rows = m.known.rows(s.All, s.Filter.Text, now)
	m.follow()
	s.Server = min(max(s.Server, 0), len(s.Status.Servers))
	s.Agent = min(max(s.Agent, 0), max(len(s.Status.Agents)-1, 0))
	s.Notices = s.Notices[:0]
	for _, n := range m.notices {
		s.Notices = append(s.Notices, n.Notice)
	}
	s.Offset = view.Window(s.Offset, s.Cursor, len(s.Rows), s.ListHeight(m.width, m.height, now))
	m.arrangeLog(now)
	if s.Switch != nil {
		m.arrangeSwitch()
	}
	if end := s.ScrollEnd(m.width, m.height, now); s.Scroll > end {
		s.Scroll = end
	}
}

// follow keeps the cursor on the chosen conversation wherever its row went.
func (m *model) follow() {
	s := &m.screen
	if m.hasChosen {
		for i, row := range s.Rows {
			if row.Key() == m.chosen {
				s.Cursor = i
				return
			}
		}
	}
	s.Cursor = min(max(s.Cursor, 0), max(len(s.Rows)-1, 0))
	m.choose(s.Cursor)
}

// choose puts the cursor on a row.
func (m *model) choose(i int) {
	s := &m.screen
	m.hasChosen = len(s.Rows) > 0
	if !m.hasChosen {
		s.Cursor = 0
		return
	}
	s.Cursor = min(max(i, 0), len(s.Rows)-1)
	m.chosen = s.Rows[s.Cursor].Key()
}
