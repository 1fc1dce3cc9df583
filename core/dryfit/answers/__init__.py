"""Questions about a network, one module per question: a public function and its typed answer."""
