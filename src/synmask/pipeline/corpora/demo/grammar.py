"""The demo's grammar: words, variables, rules, and the rules of the tasks.

    3 MAIN = ADV F.n.v.w* SBJ.n.v R.n.v.w.bare | ADV SBJ.n.v R.n.v.w.bare*

A MAIN is in German what stands before the bar, in English what stands behind it. It is taken three times as
often as one without a number; the first rule of a name ends the nesting where it gets deep.

    SBJ.n.v     a part made by a rule of SBJ, the same one on both sides; MAIN' is another MAIN
    N.f.n.x     a form of a word: a function of `inflection`
    n, v, the   variables: the left side gives their values, or they are drawn; v=give is one of this kind of
                word (if no rule is for a kind, the part is empty); other names are just names
    (VP …)      a phrase; * marks its head, else the last part is
    dass/KOUS   a word with its tag; a:ADV is the word of a variable
"""
# Kind, German = English; irregular English forms follow. Nouns: singular, plural, gender (w: masculine, but for the
# nominative like the plural). Verbs: particle+infinitive, er …, participle (* with sein), preposition (+ in English).
WORDS = """
man     Mann Männer m = man men, Arzt Ärzte m = doctor, Koch Köche m = cook, Lehrer Lehrer m = teacher,
        Hund Hunde m = dog, König Könige m = king, Nachbar Nachbarn w = neighbour,
        Student Studenten w = student, Junge Jungen w = boy
person  Frau Frauen f = woman women, Schwester Schwestern f = sister, Tochter Töchter f = daughter,
        Katze Katzen f = cat, Kind Kinder n = child children, Mädchen Mädchen n = girl
thing   Buch Bücher n = book, Bild Bilder n = picture, Rad Räder n = wheel, Lampe Lampen f = lamp,
        Tür Türen f = door, Schlüssel Schlüssel m = key, Brief Briefe m = letter, Apfel Äpfel m = apple,
        Stuhl Stühle m = chair
place   Haus Häuser n = house, Dorf Dörfer n = village, Wald Wälder m = forest, Turm Türme m = tower,
        Schule Schulen f = school
optics  Fernrohr Fernrohre n = telescope, Kamera Kameras f = camera, Spiegel Spiegel m = mirror
alone   lachen lacht gelacht = laugh, schlafen schläft geschlafen = sleep slept,
        arbeiten arbeitet gearbeitet = work, auf+wachen wacht *aufgewacht = wake woke woken,
        zurück+kommen kommt *zurückgekommen = return
get     kaufen kauft gekauft = buy bought, tragen trägt getragen = carry,
        mit+nehmen nimmt mitgenommen = take took taken, auf+machen macht aufgemacht = open,
        an+nehmen nimmt angenommen = accept, weg+werfen wirft weggeworfen = discard
meet    besuchen besucht besucht = visit, fragen fragt gefragt = ask, lieben liebt geliebt = love,
        hassen hasst gehasst = hate, an+rufen ruft angerufen = call, ein+laden lädt eingeladen = invite,
        aus+lachen lacht ausgelacht = mock
see     sehen sieht gesehen = see saw seen, beobachten beobachtet beobachtet = observe,
        an+sehen sieht angesehen = view
help    helfen hilft geholfen = help, danken dankt gedankt = thank, nach+laufen läuft *nachgelaufen = chase
give    geben gibt gegeben = give gave given, zeigen zeigt gezeigt = show showed shown,
        an+bieten bietet angeboten = offer
go      gehen geht *gegangen = go went gone, laufen läuft *gelaufen = run ran run,
        ein+brechen bricht *eingebrochen = break broke
think   warten wartet gewartet auf = wait+for, denken denkt gedacht an = think+about thought,
        auf+passen passt aufgepasst auf = watch+over
stay    liegen liegt gelegen = lie lay, stehen steht gestanden = stand stood
say     glauben glaubt geglaubt = believe, sagen sagt gesagt = say said, hoffen hofft gehofft = hope
know    wissen weiß gewusst = know knew known, ein+sehen sieht eingesehen = realise
try     versuchen versucht versucht = try, an+fangen fängt angefangen = begin began
modal   können kann = can, müssen muss = must, sollen soll = should, werden wird = will
how     alt = old, neu = new, klein = small, schön = beautiful, stark = strong, bekannt = famous,
        unbekannt = unknown
when    heute = today, oft = often, wieder = again, zweimal = twice, hier = here, draußen = outside
first   Garten = garden, Stadt = city, Winter = winter, Holz = timber, Gold = gold, Berg = mountain,
        Hafen = harbour, Insel = island
the     d d = the the
an      ein - = a -
none    kein kein = no no
mine    mein mein = my my
this    dies dies = this these
every   jed all = every all
link    weil = because, wenn = when, obwohl = although, während = while, bevor = before
"""
# Variables, and what they are drawn from: kinds of words, or names
VARIABLES = """
n m = sg sg pl, w = now now now now past past modal, d = the the the the an an mine this every none
p q r = man person, y = man, t = thing, l = place, o = optics, e = how, a = when, c = first, j = link
v = alone get meet see help give go think stay say know try, b = alone get meet help give go
z = alone meet see help, u = meet see, g = get, h = help, i = alone, k = know, s = say
"""
RULES = """
9 TOP  = (S MAIN* ./$.)                          | (S MAIN* ./.)
  TOP  = (S (S MAIN)* ,/$, und/KON (S MAIN') ./$.) | (S (S MAIN)* ,/, and/CC (S MAIN') ./.)
9 MAIN = SBJ.n.v F.n.v.w* R.n.v.w.may            | SBJ.n.v R.n.v.w.may*
3 MAIN = ADV F.n.v.w* SBJ.n.v R.n.v.w.bare         | ADV SBJ.n.v R.n.v.w.bare*
2 MAIN = SBJ.n.v F.n.v.w* R.n.v.w.may SUB        | SBJ.n.v R.n.v.w.may* SUB
2 MAIN = SUB F.n.v.w* SBJ.n.v R.n.v.w.may        | SUB ,/, SBJ.n.v R.n.v.w.may*
2 MAIN = NP.acc.sg.y V.now.u.n* SBJ.n.u V.part.u | SBJ.n.u (VP V.now.u.n* NP.acc.sg.y)
  MAIN = NP.nom.n.t Be.n* (AP e:ADJD)            | NP.nom.n.t (VP Be.n* (ADJP e:JJ))
  SUB  = (SBAR ,/$, j:KOUS CL* ,/$,)             | (SBAR j:IN CL)
2 CL   = (S SBJ.n.v L.n.v.w.may)                 | (S SBJ.n.v L.n.v.w.may)
  CL   = (S NP.nom.n.p (VP (AP e:ADJD) Be.n))    | (S NP.nom.n.p (VP Be.n* (ADJP e:JJ)))

# The predicate: behind the finite verb of a main clause (R), and as a whole where this verb stands last (L)
9 R.n.v.now.a     = A.a O.v Q.v V.part.v Z.v     | (VP V.now.v.n* O.v Q.v A.a Z.v)
  R.n.v.now.a     = A.a O.v nicht/PTKNEG Q.v V.part.v Z.v | (VP Do.n* not/RB (VP V.base.v* O.v Q.v A.a Z.v))
  R.n.v.past.a    = (VP A.a O.v Q.v V.pp.v) Z.v  | (VP V.past.v* O.v Q.v A.a Z.v)
  R.n.v.w=modal.a = (VP A.a O.v Q.v V.inf.v) Z.v | (VP w:MD* (VP V.base.v* O.v Q.v A.a Z.v))
  L.n.v.now.a     = (VP A.a O.v Q.v V.last.v.n)* Z.v | (VP V.now.v.n* O.v Q.v A.a Z.v)
  L.n.v.past.a    = (VP (VP A.a O.v Q.v V.pp.v) F.n.v.past)* Z.v | (VP V.past.v* O.v Q.v A.a Z.v)
  L.n.v.w=modal.a = (VP (VP A.a O.v Q.v V.inf.v) F.n.v.w)* Z.v | (VP w:MD* (VP V.base.v* O.v Q.v A.a Z.v))
2 A.may     =                                    |
  A.may     = ADV                                | ADV
  ADV       = (ADVP a:ADV)                       | (ADVP a:RB)
  ADV       = IN.dat                             | IN.dat
  IN.dat    = (PP in/APPR* NB.dat.n.l)           | (PP in/IN* NB.dat.n.l)
  IN.acc    = (PP in/APPR* NB.acc.n.l)           | (PP into/IN* NB.acc.n.l)

# What a verb takes: objects (O), a phrase behind "nicht" (Q), a clause at the end (Z)
  O.v=get   = NP.acc.n.t                         | NP.acc.n.t
  O.v=meet  = NP.acc.n.q                         | NP.acc.n.q
  O.v=see   = NB.acc.n.q                         | NB.acc.n.q
  O.v=help  = NP.dat.n.q                         | NP.dat.n.q
  O.v=give  = NB.dat.n.q NB.acc.m.t              | NB.acc.m.t (PP to/IN* NB.dat.n.q)
  Q.v=see   =                                    |
  Q.v=see   = (PP mit/APPR* NB.dat.n.o)          | (PP through/IN* NB.dat.n.o)
  Q.v=think = (PP Prep.v* NP.acc.n.q)            | (PP Prep.v* NP.acc.n.q)
  Q.v=go    = IN.acc                             | IN.acc
  Q.v=stay  = IN.dat                             | IN.dat
  Z.v=say,know = (SBAR ,/$, dass/KOUS CL* ,/$,)  | (SBAR that/IN CL)
  Z.v=try   = (SBAR ,/$, (S (VP O.b Q.b Zu.b V.zu.b))* ,/$,) | (S (VP to/TO* (VP V.base.b* O.b Q.b)))

# Noun phrases; NB has no attribute, so that "mit" behind a verb of seeing is its instrument
4 SBJ.n.v   = NP.nom.n.p                         | NP.nom.n.p
  SBJ.sg.v  = (NP er/PPER)                       | (NP he/PRP)
  SBJ.sg.v  = (NP sie/PPER)                      | (NP she/PRP)
  SBJ.pl.v  = (NP sie/PPER)                      | (NP they/PRP)
7 NP.f.n.x  = NB.f.n.x                           | NB.f.n.x
  NP.f.n.x  = (NP Art.f.n.x.the H.f.n.x* GEN)    | (NP (NP Art.f.n.x.the H.f.n.x)* GEN)
  NP.f.n.x  = (NP Art.f.n.x.d H.f.n.x* WITH)     | (NP (NP Art.f.n.x.d H.f.n.x)* WITH)
2 NP.f.n.x  = (NP Art.f.n.x.d H.f.n.x* RC.n.x)   | (NP (NP Art.f.n.x.d H.f.n.x)* RC.n.x)
  NP.f.pl.x = (NP NB.f.n.x* und/KON NB.f.m.q)    | (NP NB.f.n.x* and/CC NB.f.m.q)
3 NB.f.n.x  = (NP Art.f.n.x.d H.f.n.x)           | (NP Art.f.n.x.d H.f.n.x)
  NB.f.n.x  = (NP Art.f.n.x.d Adj.f.n.x.d.e H.f.n.x) | (NP Art.f.n.x.d e:JJ H.f.n.x)
3 H.f.n.x   = N.f.n.x                            | N.f.n.x
  H.f.n.x   = N.f.n.x.c                          | c:NN N.f.n.x
  WITH      = (PP mit/APPR* NB.dat.n.o)          | (PP with/IN* NB.dat.n.o)
  GEN       = (NP Art.gen.n.q.the H.gen.n.q)     | (PP of/IN* (NP Art.gen.n.q.the H.gen.n.q))

# Relative clauses; number or case tells who acts
2 RC.n.x=man,person  = (SBAR ,/$, Rel.nom.n.x (S L.n.v.w.may)* ,/$,) | (SBAR (WHNP who/WP) (S L.n.v.w.may))
  RC.sg.x=man,person = (SBAR ,/$, Rel.acc.sg.x DEED.pl.u* ,/$,) | (SBAR (WHNP whom/WP) DEED.pl.u)
  RC.pl.x=man,person = (SBAR ,/$, Rel.acc.pl.x DEED.sg.u* ,/$,) | (SBAR (WHNP whom/WP) DEED.sg.u)
  RC.n.x=man,person  = (SBAR ,/$, Rel.dat.n.x DEED.m.h* ,/$,) | (SBAR (WHNP whom/WP) DEED.m.h)
  RC.n.x=thing       = (SBAR ,/$, Rel.acc.n.x DEED.m.g* ,/$,) | (SBAR (WHNP that/WDT) DEED.m.g)
  DEED.n.v  = (S NB.nom.n.p (VP V.last.v.n))     | (S NB.nom.n.p (VP V.now.v.n))
"""
# English sentences but for their full stop. acceptability: bad | good. paraphrase: one | another meaning | the same.
# entailment: premise | what follows | what may be | what contradicts it; - if there is none.
TASKS = """
  The.p     = | (NP the/DT N.nom.sg.p)
  Det.d.p   = | (NP Art.nom.sg.p.d N.nom.sg.p)
  Old.d.p.e = | (NP Art.nom.sg.p.d e:JJ N.nom.sg.p)
  Object.z=meet,see,help.q = | The.q
  Bare.z.q  = | (VP V.base.z* Object.z.q)
  Does.z.q  = | (VP V.now.z.sg* Object.z.q)
  Not.z.q   = | (VP does/VBZ* not/RB Bare.z.q)
  Is.u.q    = | (VP is/VBZ* (VP V.pp.u* (PP by/IN* The.q)))
  Isnot.u.q = | (VP is/VBZ* not/RB (VP V.pp.u* (PP by/IN* The.q)))
  Whom.p.u.q = | (NP The.p* (SBAR (WHNP whom/WP) (S The.q (VP V.now.u.sg))))
  By.p.u.q  = | (NP The.p* (SBAR (WHNP who/WP) (S Is.u.q)))
  If.p.z.q  = | (SBAR because/IN (S The.p Does.z.q))
  Says.r.s.p.z.q = | (S The.r (VP V.now.s.sg* (SBAR that/IN (S The.p Does.z.q))))
  Far.n.p   = | (NP (NP the/DT N.nom.n.p)* (PP of/IN* (NP the/DT N.nom.m.q)))
  Far.n.p   = | (NP (NP the/DT N.nom.n.p)* (SBAR (WHNP whom/WP) (S (NP the/DT N.nom.m.q) (VP V.now.u.m))))

2 acceptability = Far.sg.p (VP V.now.z.pl* Object.z.r) | Far.sg.p (VP V.now.z.sg* Object.z.r)
2 acceptability = Far.pl.p (VP V.now.z.sg* Object.z.r) | Far.pl.p (VP V.now.z.pl* Object.z.r)
  acceptability = The.p (VP (VP V.base.i)* and/CC (VP can/MD* Does.u.q))
                | The.p (VP (VP V.now.i.sg)* and/CC (VP can/MD* Bare.u.q))
  acceptability = The.p (VP (VP can/MD* (VP V.now.i.sg))* and/CC Bare.u.q)
                | The.p (VP (VP can/MD* (VP V.base.i))* and/CC Does.u.q)
2 acceptability = The.r Does.i.p* (SBAR because/IN (S The.p (VP The.q V.now.u.sg))) | The.r Does.i.p* If.p.u.q
2 acceptability = (NP The.p* (SBAR (WHNP whom/WP) (S The.q Does.u.r))) (VP V.now.h.sg) | Whom.p.u.q Does.h.r
3 paraphrase = The.p Does.u.q              | The.p Is.u.q             | The.q Is.u.p
  paraphrase = The.p Not.u.q               | The.p Isnot.u.q          | The.q Isnot.u.p
3 paraphrase = Whom.p.u.q Does.z.r         | By.q.u.p Does.z.r        | By.p.u.q Does.z.r
3 paraphrase = If.p.z.q ,/, The.r Does.u.q | The.p Does.z.q* If.r.u.q | The.r Does.u.q* If.p.z.q
2 paraphrase = (ADVP a:RB) The.p Does.u.q  | The.p Is.u.q* (ADVP a:RB) | The.q Is.u.p* (ADVP a:RB)
  entailment = Det.every.p Does.z.q        | Det.an.p Does.z.q   | - | Det.none.p Does.z.q
  entailment = Det.an.p Does.z.q          | - | Det.every.p Does.z.q | Det.none.p Does.z.q
  entailment = The.p Not.z.q               | - | Det.an.p Does.z.q   | Det.every.p Does.z.q
  entailment = Det.none.p Does.z.q         | The.p Not.z.q        | - | Det.an.p Does.z.q
2 entailment = Old.an.p.e Does.z.q        | Det.an.p Does.z.q | Det.every.p Does.z.q | Det.none.p Does.z.q
2 entailment = Det.every.p Does.z.q        | Old.every.p.e Does.z.q | - | Old.an.p.e Not.z.q
2 entailment = Old.every.p.e Does.z.q   | Old.an.p.e Does.z.q | Det.every.p Does.z.q | Old.none.p.e Does.z.q
2 entailment = Det.none.p Does.z.q         | Old.none.p.e Does.z.q | - | Old.an.p.e Does.z.q
2 entailment = Old.none.p.e Does.z.q       | - | Det.none.p Does.z.q | Old.an.p.e Does.z.q
3 entailment = The.p Does.u.q              | The.q Is.u.p         | The.q Does.u.p | The.q Isnot.u.p
3 entailment = The.q Is.u.p                | The.p Does.u.q       | The.p Is.u.q   | The.p Not.u.q
3 entailment = The.p Not.u.q               | The.q Isnot.u.p      | The.q Not.u.p  | The.p Does.u.q
3 entailment = Whom.p.u.q Does.i.r         | The.q Does.u.p       | The.p Does.u.q | The.q Not.u.p
3 entailment = If.p.z.q ,/, The.r Does.i.q | The.p Does.z.q       | The.p Does.i.q | The.p Not.z.q
3 entailment = Says.r.k.p.i.q* and/CC Says.q.s.r.z.p | The.p Does.i.q | The.r Does.z.p | The.p Not.i.q
3 entailment = Says.q.s.r.z.p* and/CC Says.r.k.p.i.q | The.p Does.i.q | The.r Does.z.p | The.p Not.i.q
"""
