"""Shows plans and commands to people and programs, and answers recorded questions.

Owns the JSON form and the sentences. Decides nothing.
"""
